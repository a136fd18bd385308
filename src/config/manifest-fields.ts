// The one table of what a plugin's manifest may say for each backend. An entry makes the key in the manifest, the field of
// the backend's spec and the line in docs/plugins.md, and says whether another value makes it another task.
import type { FieldRule } from "./field.ts";
import type { ValuesOf } from "./value.ts";

export type Field = FieldRule & {
  /** One sentence. */
  readonly doc: string;
  /** Whether items that were executed with another value are other items, as they are unless said; of an address only with another `path`. */
  readonly identity?: false | "path";
};

/** A change of it leaves results as they are. */
const LAUNCH = { identity: false } as const;

const TEXT_BYTES = 4_096;

const command = {
  kind: "command",
  required: true,
  doc: "The program and its arguments.",
} as const;

const env = {
  kind: "texts",
  default: {},
  doc: "Environment variables for it, beside those of the worker.",
} as const;

const killGrace = {
  ...LAUNCH,
  kind: "duration",
  default: "5s",
  min: "0ms",
  max: "10m",
  doc: "How long it may take to end after SIGTERM, before it is killed.",
} as const;

const readyTimeout = {
  ...LAUNCH,
  kind: "duration",
  default: "10m",
  min: "100ms",
  max: "1d",
  doc: "How long it may take to be ready after its start.",
} as const;

const code = {
  module: {
    kind: "text",
    required: true,
    maxBytes: TEXT_BYTES,
    doc: "The JavaScript or TypeScript file, relative to the manifest.",
  },
  export: { kind: "text", default: "default", maxBytes: 256, doc: "The name of its export." },
  memory_limit: {
    ...LAUNCH,
    kind: "size",
    min: "16MiB",
    max: "1024GiB",
    doc: "The largest JavaScript heap of each of its processes. Without it Node decides.",
  },
  load_timeout: {
    ...LAUNCH,
    kind: "duration",
    default: "1m",
    min: "100ms",
    max: "1h",
    doc: "How long the file may take to load.",
  },
  abort_grace: {
    ...LAUNCH,
    kind: "duration",
    default: "500ms",
    min: "0ms",
    max: "1m",
    doc: "How long an attempt may take to end after its signal is aborted, before its process is killed.",
  },
  env,
} as const;

export const MANIFEST_FIELDS = {
  mock: {
    sleep: {
      ...LAUNCH,
      kind: "duration",
      default: "0ms",
      min: "0ms",
      max: "1h",
      doc: "How long it pretends to work on an item.",
    },
    distribution: {
      ...LAUNCH,
      kind: "choice",
      choices: ["constant", "uniform", "exponential"],
      default: "constant",
      doc: "How that time varies: not at all, evenly from nothing to twice that time, or exponentially with that mean.",
    },
    failure_percent: {
      ...LAUNCH,
      kind: "integer",
      default: 0,
      min: 0,
      max: 100,
      doc: "The percentage of attempts that it lets fail.",
    },
    journal: { ...LAUNCH, kind: "path", doc: "A file to which it appends a line for each execution." },
    state: {
      ...LAUNCH,
      kind: "size",
      min: "1B",
      max: "1MiB",
      doc: "The size of the state that it keeps for each key: the number of its successful items, and blanks. Without it, it keeps no state.",
    },
  },
  command: {
    command,
    shell: {
      kind: "boolean",
      default: false,
      doc: "Whether `command` is one text for `/bin/sh -c`.",
    },
    env,
    kill_grace: killGrace,
  },
  process: {
    command,
    concurrency: {
      ...LAUNCH,
      kind: "integer",
      default: 1,
      min: 1,
      max: 1_024,
      doc: "How many items one process has at once. There are as many processes as the worker's slots need.",
    },
    ready_timeout: readyTimeout,
    env,
    kill_grace: killGrace,
  },
  http: {
    url: {
      identity: "path",
      kind: "text",
      required: true,
      maxBytes: TEXT_BYTES,
      doc: "Where the server is: the base of its API, or one address for all items. `{port}` is a free port of this machine, for a server that `launch` starts.",
    },
    path: {
      kind: "text",
      maxBytes: TEXT_BYTES,
      doc: "Added to `url`; `{.field}` is a field of the item. Without it, if `url` ends in `/v1`, the body decides: `/chat/completions`, `/completions` or `/embeddings`.",
    },
    method: {
      kind: "choice",
      choices: ["POST", "PUT", "PATCH", "GET", "DELETE"],
      default: "POST",
      doc: "The method of a request. GET and DELETE send no body.",
    },
    body: {
      kind: "object",
      default: {},
      doc: "A template of the body, in which `{}` is the item and `{.field}` a field of it. Without it the body is the item itself.",
    },
    model: {
      kind: "text",
      maxBytes: TEXT_BYTES,
      doc: "The model of every request, instead of the one that an item names.",
    },
    parameters: {
      kind: "object",
      default: {},
      doc: "Fields for the body of each request whose item does not have them, such as `max_tokens`.",
    },
    format: {
      kind: "choice",
      choices: ["auto", "plain", "openai-batch"],
      default: "auto",
      doc: "Lines of OpenAI Batch files: `auto` recognizes them, `plain` never does, `openai-batch` refuses other items.",
    },
    output: {
      kind: "text",
      default: "body",
      maxBytes: TEXT_BYTES,
      doc: "The part of an answer that is the output: `body`, `message` (of the first choice), or a JSON pointer.",
    },
    stream: {
      ...LAUNCH,
      kind: "boolean",
      default: false,
      doc: "Whether the server sends its answer in pieces. The output is the same.",
    },
    headers: {
      ...LAUNCH,
      kind: "texts",
      default: {},
      doc: "Headers of each request. `${NAME}` is a variable of the worker's environment, for secrets.",
    },
    concurrency: {
      ...LAUNCH,
      kind: "integer",
      min: 1,
      max: 4_096,
      doc: "How many requests are under way at once. Without it, as many as the worker has slots.",
    },
    timeout: {
      ...LAUNCH,
      kind: "duration",
      default: "10m",
      min: "10ms",
      max: "1d",
      doc: "How long the server may be silent within a request; `item_timeout` limits the whole attempt.",
    },
    max_tries: {
      ...LAUNCH,
      kind: "integer",
      default: 5,
      min: 1,
      max: 100,
      doc: "How many requests one attempt may make when the server refuses, fails or cannot be reached.",
    },
    launch: { ...LAUNCH, kind: "command", doc: "Starts the server: the program and its arguments." },
    ready_url: {
      ...LAUNCH,
      kind: "text",
      maxBytes: TEXT_BYTES,
      doc: "The address that answers 2xx when the launched server is ready. Without it, `/health` of `url`.",
    },
    ready_timeout: {
      ...readyTimeout,
      doc: "How long a launched server may take to be ready, and how long any server may be out of reach, before the worker gives up.",
    },
    env: { ...env, ...LAUNCH },
    kill_grace: killGrace,
  },
  module: {
    ...code,
    parameters: { kind: "object", default: {}, doc: "A table that the function gets with each item." },
  },
  machine: {
    ...code,
    checkpoint_interval: {
      ...LAUNCH,
      kind: "duration",
      default: "1s",
      min: "0ms",
      max: "1h",
      doc: 'The least time between two kept snapshots; `"0ms"`: after each transition.',
    },
  },
  actor: {
    module: { ...code.module, ...LAUNCH },
    types: {
      ...LAUNCH,
      kind: "command",
      required: true,
      doc: "The names of its exports that are types of actors, made by `defineActor`.",
    },
    state_version: {
      ...LAUNCH,
      kind: "integer",
      default: 1,
      min: 1,
      max: 1_000_000,
      doc: "The version of the shape of states. Add one whenever the shape changes.",
    },
    memory_limit: code.memory_limit,
    load_timeout: code.load_timeout,
    abort_grace: code.abort_grace,
    env: { ...env, ...LAUNCH },
  },
} as const satisfies Record<string, Readonly<Record<string, Field>>>;

export type BackendKind = keyof typeof MANIFEST_FIELDS;

export const BACKEND_KINDS = Object.freeze(Object.keys(MANIFEST_FIELDS)) as readonly BackendKind[];

/** A manifest's values for a backend. */
export type SpecOf<Kind extends BackendKind> = ValuesOf<(typeof MANIFEST_FIELDS)[Kind]>;

export type MockSpec = SpecOf<"mock">;
export type HttpSpec = SpecOf<"http">;

/** The fields of a backend by their keys, without what the compiler knows of each. */
export function fieldsOf(kind: BackendKind): readonly (readonly [key: string, field: Field])[] {
  return Object.entries(MANIFEST_FIELDS[kind]);
}
