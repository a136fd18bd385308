// Bans by ESLint's own `no-restricted-*` rules: time, chance and the state of the process come in by injection, nothing
// decides on the text of an error, and no test ends early as if it had passed. They name the plain spellings; an alias is found by its reader.
import type { Linter } from "eslint";

export interface Injected {
  readonly clock: boolean;
  readonly chance: boolean;
  /** Environment, arguments and exit. */
  readonly process: boolean;
  /** The loop's own delay, measured by a bench. */
  readonly loopDelay: boolean;
}

type Kind = "clock" | "chance" | "process";

const ADVICE: Readonly<Record<Kind, string>> = {
  clock: "Time comes from the injected Clock (src/base/clock.ts).",
  chance: "Chance comes from the injected Random (src/base/random.ts).",
  process: "The state of the process is read in src/cli and src/commands, and passed on.",
};

const GLOBALS: Readonly<Record<Kind, readonly string[]>> = {
  clock: ["performance", "setTimeout", "setInterval", "setImmediate", "Temporal", "globalThis", "global"],
  chance: ["crypto"],
  process: [],
};

/** `object.property`, or `property` whatever it is read from. */
const PROPERTIES: Readonly<Record<Kind, readonly string[]>> = {
  clock: [
    "Date.now",
    "AbortSignal.timeout",
    "Atomics.wait",
    "Atomics.waitAsync",
    "Intl.DateTimeFormat",
    "process.uptime",
    "process.getBuiltinModule",
    "hrtime",
    "timeStamp",
    "timeOrigin",
  ],
  chance: [
    "Math.random",
    "randomUUID",
    "randomBytes",
    "randomInt",
    "randomFill",
    "randomFillSync",
    "getRandomValues",
    "pseudoRandomBytes",
  ],
  process: ["env", "argv", "argv0", "execArgv", "exit", "reallyExit"].map((name) => `process.${name}`),
};

/** Modules, with the names that are banned; without any, the whole module is. */
const MODULES: Readonly<Record<Kind, Readonly<Record<string, readonly string[]>>>> = {
  clock: { timers: [], "timers/promises": [], perf_hooks: [], os: ["uptime"] },
  chance: { crypto: PROPERTIES.chance.filter((name) => !name.includes(".")) },
  process: { process: [] },
};

const ERROR = "/^(e|err|error|ex|exception|cause|reason)$|(Error|Cause)$/";
const QUESTION =
  "/^(endsWith|exec|get|has|includes|indexOf|lastIndexOf|match|matchAll|search|startsWith|test)$/";
/** `error.message`, `(error as Error).message`, `found.cause.message`. */
const ERROR_TEXT = `[property.name=/^(message|rawMessage|stack)$/]:matches([object.name=${ERROR}], [object.expression.name=${ERROR}], [object.property.name=${ERROR}], [object.expression.property.name=${ERROR}])`;

/** Decisions on the text of an error. Whether there is a text may be asked. */
const ERROR_TEXT_DECISIONS = [
  `BinaryExpression[operator=/^([!=]==?|[<>]=?|in)$/]:not([right.type='Identifier'][right.name='undefined']):not([right.type='Literal'][right.value='']) > MemberExpression${ERROR_TEXT}`,
  `SwitchStatement > MemberExpression.discriminant${ERROR_TEXT}`,
  `MemberExpression[property.name=${QUESTION}] > MemberExpression.object${ERROR_TEXT}`,
  `CallExpression[callee.property.name=${QUESTION}] > MemberExpression.arguments${ERROR_TEXT}`,
  `MemberExpression[property.name=${QUESTION}] > CallExpression.object[callee.name='String'][arguments.0.name=${ERROR}]`,
].map((selector) => ({
  selector,
  message: "A decision on the text of an error: decide on its code or its kind.",
}));

const EARLY_END_OF_A_TEST = {
  selector:
    "CallExpression[callee.name='it'] > ArrowFunctionExpression > BlockStatement > IfStatement > ReturnStatement.consequent[argument=null]",
  message: "A test that ends here passes and has looked at nothing: return expect.fail(why).",
};

/** The rules for files in which the kinds that are `true` are injected. */
export function restrictions(injected: Partial<Injected> = {}): Linter.RulesRecord {
  const { clock = true, chance = true, process = true, loopDelay = true } = injected;
  const isBanned = { clock, chance, process };
  const kinds = (["clock", "chance", "process"] as const).filter((kind) => isBanned[kind]);
  const paths = kinds.flatMap((kind) =>
    Object.entries(MODULES[kind]).flatMap(([module, importNames]) =>
      [module, `node:${module}`].map((name) => ({
        name,
        message: ADVICE[kind],
        allowTypeImports: true,
        ...(importNames.length > 0 && { importNames: [...importNames] }),
        ...(module === "perf_hooks" && !loopDelay && { allowImportNames: ["monitorEventLoopDelay"] }),
      })),
    ),
  );
  const globals = kinds.flatMap((kind) => GLOBALS[kind].map((name) => ({ name, message: ADVICE[kind] })));
  return {
    // A severity alone leaves the options of an earlier block in force.
    "no-restricted-globals": globals.length > 0 ? ["error", ...globals] : "off",
    "no-restricted-properties": kinds.length > 0 ? ["error", ...kinds.flatMap(restrictedProperties)] : "off",
    "no-restricted-imports": ["error", { paths }],
    "no-restricted-syntax": [
      "error",
      ...ERROR_TEXT_DECISIONS,
      EARLY_END_OF_A_TEST,
      ...(clock
        ? [{ selector: ":matches(NewExpression, CallExpression)[callee.name='Date']", message: ADVICE.clock }]
        : []),
    ],
  };
}

function restrictedProperties(kind: Kind): { object?: string; property: string; message: string }[] {
  return PROPERTIES[kind].map((path) => {
    const [first = "", second] = path.split(".");
    const message = ADVICE[kind];
    return second === undefined ? { property: first, message } : { object: first, property: second, message };
  });
}
