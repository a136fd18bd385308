// Rule: time, chance and the state of the process come in by injection. This finds every way to reach them past
// src/base: globals and their aliases, members by any spelling, destructuring, modules imported, required or borrowed.
import type { Scope } from "eslint";
import {
  child,
  children,
  defineRule,
  keyOf,
  nameOf,
  type SyntaxNode,
  textOf,
  type Visitors,
} from "./syntax.ts";

export interface AmbientOptions {
  readonly clock: boolean;
  readonly chance: boolean;
  /** Environment, arguments and exit. */
  readonly process: boolean;
  /** Names that may be imported from a module that is banned otherwise. */
  readonly allowImports?: readonly string[];
}

type Kind = "clock" | "chance" | "process";

const ADVICE: Readonly<Record<Kind, string>> = {
  clock: "time comes from the injected Clock (src/base/clock.ts)",
  chance: "chance comes from the injected Random (src/base/random.ts)",
  process: "the state of the process is read in src/cli and src/commands, and passed on",
};

/** Globals that may not be touched at all, but as a type. */
const GLOBALS: Readonly<Record<string, Kind>> = {
  performance: "clock",
  setTimeout: "clock",
  setInterval: "clock",
  setImmediate: "clock",
  Temporal: "clock",
  crypto: "chance",
  globalThis: "clock",
  global: "clock",
};

/** Globals of which some members are banned; any use that is no plain member access is an alias, banned as well. */
const GUARDED: Readonly<Record<string, { kind: Kind; members?: Record<string, Kind>; allowed?: string[] }>> =
  {
    Date: { kind: "clock", allowed: ["parse", "UTC"] },
    Math: { kind: "chance", members: { random: "chance" } },
    AbortSignal: { kind: "clock", members: { timeout: "clock" } },
    Atomics: { kind: "clock", members: { wait: "clock", waitAsync: "clock" } },
    Intl: { kind: "clock", members: { DateTimeFormat: "clock" } },
    process: {
      kind: "process",
      members: {
        hrtime: "clock",
        uptime: "clock",
        getBuiltinModule: "clock",
        binding: "clock",
        env: "process",
        argv: "process",
        argv0: "process",
        execArgv: "process",
        exit: "process",
        reallyExit: "process",
      },
    },
  };

/** Members that are banned whatever they are read from: the object may be an alias of the real one. */
const MEMBERS: Readonly<Record<string, Kind>> = {
  hrtime: "clock",
  timeStamp: "clock",
  timeOrigin: "clock",
  randomUUID: "chance",
  randomBytes: "chance",
  randomInt: "chance",
  randomFill: "chance",
  randomFillSync: "chance",
  getRandomValues: "chance",
  pseudoRandomBytes: "chance",
  prng: "chance",
};

/** Modules of which nothing, or only some names, may be imported. */
const MODULES: Readonly<Record<string, { kind: Kind; names?: readonly string[] }>> = {
  timers: { kind: "clock" },
  "timers/promises": { kind: "clock" },
  perf_hooks: { kind: "clock" },
  process: { kind: "process" },
  os: { kind: "clock", names: ["uptime"] },
  crypto: { kind: "chance", names: Object.keys(MEMBERS) },
};

const moduleRule = (source: string | undefined) =>
  source === undefined ? undefined : MODULES[source.replace(/^node:/, "")];

export const ambientWorld = defineRule("time, chance and process state are injected", (context, report) => {
  const options = context.options[0] as AmbientOptions;
  const tell = (node: SyntaxNode, kind: Kind, what: string): void => {
    if (options[kind]) report(node, `${what}: ${ADVICE[kind]}`);
  };
  const globals = (scope: Scope.Scope): void => {
    for (const { name, node } of globalReferences(scope)) {
      const kind = Object.hasOwn(GLOBALS, name) ? GLOBALS[name] : undefined;
      if (kind !== undefined) tell(node, kind, name);
      else if (Object.hasOwn(GUARDED, name)) guardedGlobal(name, node, tell);
    }
  };
  return {
    "Program:exit"(node) {
      const { globalScope } = context.sourceCode.scopeManager;
      if (globalScope !== null) globals(globalScope);
      else report(node, "no scope to check");
    },
    ...memberVisitors(tell),
    ...importVisitors(tell, options.allowImports ?? []),
  };
});

type Tell = (node: SyntaxNode, kind: Kind, what: string) => void;

/** Uses of globals as values. A name that the file declares itself is no global. */
function* globalReferences(scope: Scope.Scope): Generator<{ name: string; node: SyntaxNode }> {
  const declared = scope.variables.filter((variable) => variable.defs.length === 0);
  const references = new Set([...scope.through, ...declared.flatMap((variable) => variable.references)]);
  for (const { identifier } of references) {
    const node = identifier as unknown as SyntaxNode;
    const name = nameOf(node);
    if (name !== undefined && !isTypePosition(node)) yield { name, node };
  }
}

function isTypePosition(node: SyntaxNode): boolean {
  return node.parent?.type.startsWith("TS") === true && !/Expression$|Assertion$/.test(node.parent.type);
}

function guardedGlobal(name: string, node: SyntaxNode, tell: Tell): void {
  const guard = GUARDED[name];
  const { parent } = node;
  if (guard === undefined || parent === undefined) return;
  if (parent.type === "BinaryExpression" && parent["operator"] === "instanceof") return;
  if (parent.type !== "MemberExpression" || child(parent, "object") !== node) {
    return tell(node, guard.kind, `${name}, aliased or called`);
  }
  const key = keyOf(parent);
  if (key === undefined) return tell(parent, guard.kind, `${name}[…]`);
  if (guard.allowed !== undefined) {
    if (!guard.allowed.includes(key)) tell(parent, guard.kind, `${name}.${key}`);
    return;
  }
  const kind =
    guard.members !== undefined && Object.hasOwn(guard.members, key) ? guard.members[key] : undefined;
  if (kind !== undefined) tell(parent, kind, `${name}.${key}`);
}

function memberVisitors(tell: Tell): Visitors {
  const member = (node: SyntaxNode): void => {
    const key = keyOf(node);
    if (key !== undefined && Object.hasOwn(MEMBERS, key)) tell(node, MEMBERS[key] ?? "clock", key);
  };
  return {
    MemberExpression: member,
    "ObjectPattern > Property": member,
    "CallExpression > MemberExpression.callee"(node) {
      if (keyOf(node) === "uptime") tell(node, "clock", "uptime()");
    },
  };
}

function importVisitors(tell: Tell, allowed: readonly string[]): Visitors {
  const whole = (node: SyntaxNode, source: SyntaxNode | undefined): void => {
    const rule = moduleRule(textOf(source));
    if (rule !== undefined && rule.names === undefined) tell(node, rule.kind, textOf(source) ?? "");
  };
  const named = (node: SyntaxNode): void => {
    if (node["importKind"] === "type" || node["exportKind"] === "type") return;
    const rule = moduleRule(textOf(child(node, "source")));
    const specifiers = children(node, "specifiers");
    if (rule === undefined) return;
    if (specifiers.length === 0) return whole(node, child(node, "source"));
    for (const specifier of specifiers) {
      const imported = child(specifier, node.type === "ImportDeclaration" ? "imported" : "local");
      const name = nameOf(imported) ?? textOf(imported) ?? "*";
      const isBanned = rule.names?.includes(name) ?? !allowed.includes(name);
      if (isBanned && specifier["importKind"] !== "type") tell(specifier, rule.kind, name);
    }
  };
  return {
    ImportDeclaration: named,
    ExportNamedDeclaration: named,
    ExportAllDeclaration: (node) => whole(node, child(node, "source")),
    ImportExpression: (node) => whole(node, child(node, "source")),
    TSImportEqualsDeclaration: (node) => whole(node, child(child(node, "moduleReference"), "expression")),
    "CallExpression[arguments.length=1]": (node) => {
      const [source] = children(node, "arguments");
      if (isLoader(child(node, "callee")) || textOf(source)?.startsWith("node:") === true)
        whole(node, source);
    },
  };
}

/** `require`, `createRequire(…)` and `process.getBuiltinModule`; under another name, `node:` gives them away. */
function isLoader(callee: SyntaxNode | undefined): boolean {
  const made = callee?.type === "CallExpression" ? child(callee, "callee") : callee;
  const name = nameOf(made) ?? (made?.type === "MemberExpression" ? keyOf(made) : undefined);
  return name === "require" || name === "createRequire" || name === "getBuiltinModule";
}
