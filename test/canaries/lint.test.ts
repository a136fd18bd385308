// Each ban of the lint holds in its plain spellings, and what is allowed stays allowed.
import { expect } from "chai";
import { readFileSync } from "node:fs";
import tseslint from "typescript-eslint";
import { type Ended, houseForAll } from "./house.ts";

interface Snippet {
  readonly file: string;
  readonly text: string;
  /** The rule that refuses it; null when it is allowed. */
  readonly rule: string | null;
}

let count = 0;
/** Each text is a file of its own in `folder`. */
const all = (rule: string | null, folder: string, texts: readonly string[]): Snippet[] =>
  texts.map((text) => ({ file: `${folder}/planted-${++count}.ts`, text, rule }));

/** Time, chance and the state of the process, each in its plain spellings. */
const GLOBALS = [
  "export const at = globalThis.Date.now();",
  "global.setTimeout(() => {}, 1);",
  "export const at = performance.now();",
  "export const at = performance.timeOrigin;",
  "const { now } = performance;\nexport const at = now();",
  "setTimeout(() => {}, 1);",
  "export const later = setTimeout;",
  "setInterval(() => {}, 1);",
  "setImmediate(() => {});",
  'import { promisify } from "node:util";\nexport const sleep = promisify(setTimeout);',
  "export const id = crypto.randomUUID();",
  "export const id = globalThis.crypto.randomUUID();",
];

const PROPERTIES = [
  "export const at = Date.now();",
  'export const at = Date["now"]();',
  "export const { now } = Date;",
  "export const signal = AbortSignal.timeout(1);",
  "export const at = process.hrtime();",
  "export const at = process.hrtime.bigint();",
  "export const { hrtime } = process;",
  "export const at = process.uptime();",
  "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);",
  "export const at = new Intl.DateTimeFormat().format();",
  'export const at = new Event("now").timeStamp;',
  "export const one = Math.random();",
  'export const one = Math["random"]();',
  "export const { random } = Math;",
  'import { webcrypto } from "node:crypto";\nexport const one = webcrypto.getRandomValues(new Uint8Array(1));',
  'import { webcrypto } from "node:crypto";\nexport const { getRandomValues } = webcrypto;',
  'import all from "node:crypto";\nexport const id = all["randomUUID"]();',
  'export const home = process.env["HOME"];',
  'export const home = process["env"]["HOME"];',
  "export const { env } = process;",
  "export const list = process.argv;",
  "process.exit(1);",
];

const IMPORTS = [
  'import { setTimeout as later } from "node:timers";\nlater(() => {}, 1);',
  'import * as timers from "timers";\nexport const t = timers;',
  'import timers from "node:timers";\nexport const t = timers;',
  'import { setTimeout as sleep } from "node:timers/promises";\nawait sleep(1);',
  'import { scheduler } from "timers/promises";\nawait scheduler.wait(1);',
  'export { setTimeout } from "node:timers";',
  'export * from "node:timers/promises";',
  'import { performance as p } from "node:perf_hooks";\nexport const at = p.now();',
  'import { monitorEventLoopDelay } from "perf_hooks";\nexport const lag = monitorEventLoopDelay();',
  'import { uptime } from "node:os";\nexport const at = uptime();',
  'import * as os from "node:os";\nexport const at = os.uptime();',
  'import { randomUUID } from "node:crypto";\nexport const id = randomUUID();',
  'import { randomUUID as id } from "crypto";\nexport const one = id();',
  'import { randomBytes } from "node:crypto";\nexport const one = randomBytes(1);',
  'import { randomInt } from "node:crypto";\nexport const one = randomInt(9);',
  'import { randomFillSync } from "node:crypto";\nexport const one = randomFillSync(new Uint8Array(1));',
  'import { getRandomValues } from "node:crypto";\nexport const one = getRandomValues(new Uint8Array(1));',
  'import * as all from "node:crypto";\nexport const id = all.randomUUID();',
  'export { randomUUID } from "node:crypto";',
  'import process from "node:process";\nexport const list = process.argv;',
  'import { env } from "node:process";\nexport const home = env;',
  'import { argv } from "process";\nexport const list = argv;',
];

const DATES = [
  "export const at = new Date();",
  "export const at = new Date(0);",
  "export const at = Date();",
];

const inCatch = (code: string): string =>
  `export function f(run: () => void): unknown {\n  try {\n    run();\n  } catch (error) {\n${code}\n  }\n  return 1;\n}`;
const onError = (code: string): string =>
  `export function f(error: Error): unknown {\n${code}\n  return 1;\n}`;

const ERROR_TEXTS = [
  onError('if (error.message === "gone") return 2;'),
  onError('if ("gone" != error.message) return 2;'),
  onError('if (error.message.includes("gone")) return 2;'),
  onError("if (error.message.match(/gone/) !== null) return 2;"),
  onError("return /gone/.test(error.message);"),
  onError("return /gone/u.exec(error.message)?.[0];"),
  onError('return error.message.indexOf("gone") >= 0;'),
  onError('switch (error.message) { case "gone": return 2; default: return 3; }'),
  onError('return error.stack?.includes("gone");'),
  onError('return ["gone"].includes(error.message);'),
  onError('return String(error).includes("gone");'),
  inCatch('if ((error as Error).message === "gone") return 2;'),
  inCatch('if ((error as { message: string }).message === "gone") return 2;'),
  inCatch('if (error instanceof Error && error.message === "gone") return 2;'),
  inCatch('if (String(error).includes("gone")) return 2;'),
  "export const f = (one: { cause?: unknown }): boolean => (one.cause as TypeError).message === String(1);",
];

const TYPED: readonly [rule: string, text: string][] = [
  ["no-floating-promises", "const f = async (): Promise<void> => {};\nf();"],
  ["no-misused-promises", "export const f = (l: number[]): void => l.forEach(async () => { await f; });"],
  ["no-misused-promises", "const f = async (): Promise<boolean> => true;\nif (f()) await f();"],
  [
    "switch-exhaustiveness-check",
    'export function f(k: "a" | "b"): void { switch (k) { case "a": break; } }',
  ],
  ["no-unsafe-assignment", 'export const x = JSON.parse("1");'],
  ["no-unnecessary-condition", "export const f = (x: string): string => x ?? 1;"],
  ["restrict-template-expressions", "export const f = (x: object): string => `${x}`;"],
  ["only-throw-error", 'export const f = (): never => { throw "text"; };'],
].map(([rule, text]) => [`typescript/${rule}`, text ?? ""]);

/** They read TypeScript, and need no types for it. */
const SYNTAX: readonly [rule: string, text: string][] = [
  ["consistent-type-imports", 'import { Clock } from "../base/clock.ts";\nexport type C = Clock;'],
  ["no-explicit-any", "export const f = (x: any): unknown => x;"],
  ["no-non-null-assertion", "export const f = (x?: string): string => x!;"],
  ["ban-ts-comment", "// @ts-ignore\nexport const x: string = 1;"],
  ["no-unused-vars", "export const f = (unused: number): number => 1;"],
].map(([rule, text]) => [`@typescript-eslint/${rule}`, text ?? ""]);

/** Rules of `strictTypeChecked` that this house does without. */
const DONE_WITHOUT = [
  // `return stop();` says in one line that there is nothing more to do; a branded id is named by its caller.
  ...["no-confusing-void-expression", "no-unnecessary-type-parameters", "no-meaningless-void-operator"],
  // A port that answers by promises has implementations that need not wait.
  "require-await",
  // The program that reads types does not have it, and there are no enums: the compiler refuses them.
  "no-unsafe-enum-assignment",
];

const lines = (length: number): string => "// A line.\n".repeat(length) + "export {};";
const SHAPES: readonly [rule: string, file: string, text: string][] = [
  ["max-lines", "src/worker/long-file.ts", lines(400)],
  ["max-lines", "test/unit/long.test.ts", lines(600)],
  [
    "max-lines-per-function",
    "src/worker/long-function.ts",
    `export function f(): void {\n${"f();\n".repeat(71)}}`,
  ],
  [
    "max-depth",
    "src/worker/deep.ts",
    `export function f(x: number): void {${"if (x > f.length) {".repeat(5)}f(x);${"}".repeat(6)}`,
  ],
  ["house/plain-opening", "machines/what.ts", "// What is left.\nexport const x = 1;"],
  ["house/plain-opening", "scripts/who.ts", "// Who is left.\nexport const y = 1;"],
  [
    "house/plain-opening",
    "machines/whoever.ts",
    "/**\n * A room. Whoever\n * enters, stays.\n */\nexport const x = 1;",
  ],
  [
    "house/plain-opening",
    "machines/second.ts",
    "// A room.\n// Of two doors one is open.\nexport const x = 1;",
  ],
  ["no-restricted-exports", "src/worker/by-default.ts", "export default 1;"],
  ["no-restricted-exports", "src/worker/as-default.ts", "const x = 1;\nexport { x as default };"],
  ["no-console", "src/worker/talks.ts", "console.log(1);"],
  ["no-eval", "src/worker/evaluates.ts", 'export const x: unknown = eval("1");'],
  ...["utils", "helpers", "types", "common", "misc", "interfaces", "constants", "string-utils"].map(
    (name): [string, string, string] => ["house/file-name", `src/worker/${name}.ts`, "export const x = 1;"],
  ),
  ["house/file-name", "src/utils/leaf.ts", "export const x = 1;"],
  ["house/file-name", "test/support/helpers.ts", "export const x = 1;"],
  ["house/file-name", "src/worker/camelCase.ts", "export const x = 1;"],
  ["house/file-name", "src/worker/Upper.ts", "export const x = 1;"],
];

const REFUSED: readonly Snippet[] = [
  ...all("no-restricted-globals", "src/worker", GLOBALS),
  ...all("no-restricted-properties", "src/worker", PROPERTIES),
  ...all("no-restricted-imports", "src/worker", IMPORTS),
  ...all("no-restricted-syntax", "src/worker", DATES),
  ...all("no-restricted-properties", "machines", [
    "export const at = Date.now();",
    "export const x = Math.random();",
  ]),
  ...all("no-restricted-properties", "src/commands", [
    "export const at = Date.now();",
    "export const x = Math.random();",
  ]),
  ...all("no-restricted-properties", "src/base", [
    "export const at = Date.now();",
    "export const x = Math.random();",
  ]),
  ...all("no-restricted-globals", "test/unit", ["setTimeout(() => {}, 1);"]),
  ...all("no-restricted-syntax", "test/unit", ["export const at = new Date();"]),
  ...all("no-restricted-properties", "test/support", ["export const one = Math.random();"]),
  ...all("no-restricted-globals", "bench", ["export const at = performance.now();"]),
  ...all("no-restricted-syntax", "src/worker", ERROR_TEXTS),
  ...all("no-restricted-syntax", "test/unit", [
    'it("is", () => {\n  const [one] = all;\n  if (one === undefined) return;\n  one();\n});',
  ]),
  ...all("no-restricted-syntax", "test/unit", [onError('if (error.message === "gone") return 2;')]),
  ...[...TYPED, ...SYNTAX].flatMap(([rule, text]) => all(rule, "src/worker", [text])),
  ...SHAPES.map(([rule, file, text]) => ({ rule, file, text })),
  // An exception asked for in the file itself is not given.
  ...all("no-restricted-properties", "src/worker", ["/* eslint-disable */\nexport const at = Date.now();"]),
  ...all("no-warning-comments", "src/worker", [
    "/* eslint-disable */\nexport const x = 1;",
    "// oxlint-disable-next-line\nexport const x = 1;",
    "export const x = 1; // Bound by oxlint-disable-line typescript/no-floating-promises",
  ]),
];

const ALLOWED: readonly Snippet[] = [
  ...all(null, "src/worker", [
    "export const at = Date.parse(String(1));",
    "export const f = (x: unknown): x is Date => x instanceof Date;",
    "export type Handle = ReturnType<typeof setTimeout>;",
    "export const x = Math.min(1, 2);",
    "export const f = (a: AbortSignal, b: AbortSignal): AbortSignal => AbortSignal.any([a, b]);",
    "export const id = process.pid;",
    'import { createHash } from "node:crypto";\nexport const h = createHash("sha256");',
    'import type { IntervalHistogram } from "node:perf_hooks";\nexport type H = IntervalHistogram;',
    'export const f = (record: { message: string }): boolean => record.message === "gone";',
    onError("return `it failed: ${error.message}`;"),
    onError("return error.message.slice(0, 10);"),
    onError("if (error.stack !== undefined) return error.stack;"),
    onError('if ((error as NodeJS.ErrnoException).code === "ENOENT") return 2;'),
    inCatch("return String(error);"),
  ]),
  ...all(null, "test/support", ["setTimeout(() => {}, 1);"]),
  ...all(null, "test/unit", ['export const home = process.env["HOME"];']),
  ...all(null, "src/commands", [
    "export default class Run { readonly name = String(1); }",
    "export const list = process.argv;",
  ]),
  ...all(null, "machines", [
    "// What is left?\nexport const x = 1;",
    "// Nobody knows what is left, nor\n// Whose it is.\nexport const x = 1;",
    'export const x = "What is left";',
  ]),
  ...all(null, "bench", [
    'import { monitorEventLoopDelay } from "node:perf_hooks";\nexport const lag = monitorEventLoopDelay();',
  ]),
];

interface Report {
  readonly filePath: string;
  readonly messages: readonly { readonly ruleId: string | null; readonly message: string }[];
}

interface TypedRule {
  readonly meta?: { readonly docs?: { readonly requiresTypeChecking?: boolean } };
}

interface TypedReport {
  readonly diagnostics: readonly { readonly filename: string; readonly code: string }[];
}

describe("canary: the lint", () => {
  const house = houseForAll([
    "tsconfig.json",
    "package.json",
    "eslint.config.js",
    ".oxlintrc.json",
    "scripts/lint",
    "src/base/clock.ts",
    "src/base/random.ts",
  ]);
  let clean: Ended[];
  let planted: Ended[];
  const rulesBroken = new Map<string, (string | null)[]>();

  before(async () => {
    clean = [await house.check("lint"), await house.check("lint-types")];
    house.plant(Object.fromEntries([...REFUSED, ...ALLOWED].map(({ file, text }) => [file, text])));
    const json = ["--format", "json"];
    const [syntax, types] = [await house.check("lint", ...json), await house.check("lint-types", ...json)];
    planted = [syntax, types];
    for (const { filePath, messages } of JSON.parse(syntax.output) as Report[]) {
      rulesBroken.set(
        filePath.slice(house.path.length + 1),
        messages.map(({ ruleId }) => ruleId),
      );
    }
    for (const { filename, code } of (JSON.parse(types.output) as TypedReport).diagnostics)
      rulesBroken.get(filename)?.push(code.replace(/\((.*)\)$/, "/$1"));
  });

  it("passes a clean house", () => {
    expect(clean.map(({ code }) => code)).to.deep.equal([0, 0], clean.map(({ output }) => output).join(""));
  });

  it("fails a house with violations", () => {
    expect(planted.map(({ code }) => code)).to.deep.equal([1, 1]);
  });

  it("has each rule that needs types, but those that the house does without", () => {
    const { rules } = JSON.parse(readFileSync(".oxlintrc.json", "utf8")) as { readonly rules: object };
    const strict = Object.assign(
      {},
      ...tseslint.configs.strictTypeChecked.map((config) => config.rules),
    ) as object;
    const typed = Object.keys(strict)
      .map((name) => name.replace("@typescript-eslint/", ""))
      .filter((name) => needsTypes(name) && !DONE_WITHOUT.includes(name));
    expect(Object.keys(rules)).to.include.members(typed.map((name) => `typescript/${name}`));
  });

  for (const { file, text, rule } of REFUSED) {
    it(`${rule} refuses, in ${file}: ${text.slice(0, 110).replaceAll("\n", " ")}`, () => {
      expect(rulesBroken.get(file)).to.include(rule);
    });
  }

  for (const { file, text } of ALLOWED) {
    it(`allows, in ${file}: ${text.replaceAll("\n", " ")}`, () => {
      expect(rulesBroken.get(file)).to.deep.equal([]);
    });
  }
});

function needsTypes(rule: string): boolean {
  const { rules = {} } = tseslint.plugin as { readonly rules?: Readonly<Record<string, TypedRule>> };
  return rules[rule]?.meta?.docs?.requiresTypeChecking === true;
}
