// Values of the configuration: the rules for settings, and one value on its way from what a file, a variable or a flag says to what the
// program uses, or a refusal that says what is allowed. Nothing is clamped or guessed.
import { isAbsolute, resolve } from "node:path";
import { unreachable } from "../base/assert.ts";
import type { JsonObject } from "../base/exact-json.ts";
import { isUlid } from "../base/ids.ts";
import { isHost, isLoopback, parseAddress } from "../base/address.ts";
import { parseDurationMs, parseQuantity } from "./duration.ts";
import { parseFailuresAllowed } from "./failures-allowed.ts";
import { isUrl, parseBucketUrl } from "./bucket-url.ts";
import { parsePostgresUrl } from "./postgres-url.ts";
import { parseWebSocketUrl } from "./websocket-url.ts";

/** The form of a value, and its default. */
export type ValueRule =
  | { readonly kind: "duration"; readonly default?: string; readonly min: string; readonly max: string }
  | { readonly kind: "size"; readonly default?: string; readonly min: string; readonly max: string }
  | { readonly kind: "integer"; readonly default?: number; readonly min: number; readonly max: number }
  | { readonly kind: "boolean"; readonly default: boolean }
  | { readonly kind: "failures"; readonly default?: string }
  | { readonly kind: "choice"; readonly default?: string; readonly choices: readonly string[] }
  | { readonly kind: "list"; readonly default?: readonly string[]; readonly of: "host" | "topic" | "path" }
  | {
      readonly kind: "address";
      readonly default?: string;
      readonly portZero: boolean;
      /** Loopback, and nothing that another machine reaches. */
      readonly ofThisMachine?: true;
    }
  /** One or several. */
  | { readonly kind: "addresses"; readonly default?: readonly string[]; readonly max: number }
  | { readonly kind: "path"; readonly default?: string }
  /** A directory, or a bucket of an object store by its URL. */
  | { readonly kind: "place"; readonly default?: string }
  | { readonly kind: "postgres"; readonly default?: string }
  /** The URL of a WebSocket server. */
  | { readonly kind: "websocket"; readonly default?: string }
  | { readonly kind: "ulid"; readonly default?: string };

/** The type of a value that a rule has allowed. */
export type ValueOf<Rule> = Rule extends {
  readonly kind: "duration" | "size" | "integer" | "percent" | "number";
}
  ? number
  : Rule extends { readonly choices: readonly (infer Choice)[] }
    ? Choice
    : Rule extends { readonly kind: "boolean" }
      ? boolean
      : Rule extends { readonly kind: "addresses" | "command" | "hosts" | "list" }
        ? readonly string[]
        : Rule extends { readonly kind: "range" }
          ? readonly [number, number]
          : Rule extends { readonly kind: "texts" }
            ? Readonly<Record<string, string>>
            : Rule extends { readonly kind: "object" }
              ? JsonObject
              : string;

/** Undefined, where a rule neither demands a value nor has a default. */
export type Present<Rule> = Rule extends { readonly required: true } | { readonly default: unknown }
  ? never
  : undefined;

type Camel<Text extends string> = Text extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Text;

type NameOf<Key extends string, Rule> = Rule extends { readonly kind: "duration" }
  ? `${Camel<Key>}Ms`
  : Rule extends { readonly kind: "size" }
    ? `${Camel<Key>}Bytes`
    : Camel<Key>;

/**
 * The values of a table of rules, by the names that the program has for them: `kill_grace` is `killGraceMs`, `memory_limit` is
 * `memoryLimitBytes`, and so on. A value that is neither required nor has a default may be undefined.
 */
export type ValuesOf<Rules> = {
  readonly [Key in keyof Rules & string as NameOf<Key, Rules[Key]>]:
    | ValueOf<Rules[Key]>
    | Present<Rules[Key]>;
};

/** `kill_grace` with its duration is `killGraceMs`: as `ValuesOf` has it. */
export function nameOf(key: string, { kind }: { readonly kind: string }): string {
  const camel = key.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  return kind === "duration" ? `${camel}Ms` : kind === "size" ? `${camel}Bytes` : camel;
}

export type ParsedValue = number | boolean | string | readonly string[];

export interface ValueContext {
  /** The directory for relative paths. */
  readonly directory: string;
  /** Names that a list of topics may hold. */
  readonly topics: readonly string[];
}

const PATH_MAX_CHARS = 4_096;

/** Undefined when the setting does not allow `raw`. Text is also taken for integers, booleans and lists, as variables and flags give it. */
export function parseValue(setting: ValueRule, raw: unknown, context: ValueContext): ParsedValue | undefined {
  switch (setting.kind) {
    case "duration":
      return inRange(
        asText(raw, parseDurationMs),
        parseDurationMs(setting.min),
        parseDurationMs(setting.max),
      );
    case "size":
      return inRange(asText(raw, parseSizeBytes), parseSizeBytes(setting.min), parseSizeBytes(setting.max));
    case "integer":
      return inRange(parseInteger(raw), setting.min, setting.max);
    case "boolean":
      return parseBoolean(raw);
    case "failures":
      // A number in the file is meant as it is written.
      return asText(typeof raw === "number" ? String(raw) : raw, (text) =>
        parseFailuresAllowed(text) === undefined ? undefined : text,
      );
    case "choice":
      return asText(raw, (text) => (setting.choices.includes(text) ? text : undefined));
    case "ulid":
      return asText(raw, (text) => (isUlid(text) ? text : undefined));
    case "path":
      return asText(raw, (text) => parsePath(text, context.directory));
    case "place":
      return asText(raw, (text) =>
        isUrl(text) ? parseBucketUrl(text) && text : parsePath(text, context.directory),
      );
    case "address":
      return asText(raw, (text) => parseAddressText(text, setting));
    case "addresses":
      return parseAddresses(raw, setting.max);
    case "postgres":
      return asText(raw, (text) => (parsePostgresUrl(text) === undefined ? undefined : text));
    case "websocket":
      return asText(raw, (text) => (parseWebSocketUrl(text) === undefined ? undefined : text));
    case "list":
      return parseList(raw, (text) => parseEntry(setting.of, text, context));
    default:
      return unreachable(setting, "kind of setting");
  }
}

/** Allowed values of the setting, in the words of a hint. */
export function describeAllowed(setting: ValueRule, topics: readonly string[]): string {
  switch (setting.kind) {
    case "duration":
      return `a duration from "${setting.min}" to "${setting.max}", such as "${setting.default ?? setting.min}"`;
    case "size":
      return `a size from "${setting.min}" to "${setting.max}", such as "${setting.default ?? setting.min}"`;
    case "integer":
      return `a whole number from ${setting.min} to ${setting.max}`;
    case "boolean":
      return "true or false";
    case "failures":
      return 'a whole number from 1, a percentage such as "5%", or none';
    case "choice":
      return setting.choices.join(", ");
    case "ulid":
      return "a ULID (26 characters, upper case), such as `rollout init` makes";
    case "path":
      return "a path";
    case "place":
      return "a directory, s3://BUCKET/PREFIX, or https://HOST:PORT/BUCKET/PREFIX, without a user, a query and a fragment";
    case "address":
      if (setting.ofThisMachine)
        return "host:port of this machine alone, such as 127.0.0.1:7712 or [::1]:7712, as nobody who asks there shows a certificate";
      return setting.portZero
        ? "host:port, with IPv6 in brackets"
        : "host:port with a port above 0, IPv6 in brackets";
    case "addresses":
      return `host:port with a port above 0, IPv6 in brackets, or a list of 1 to ${setting.max} of them, each once`;
    case "postgres":
      return "postgres://USER@HOST:PORT,HOST:PORT/DATABASE, with ?sslmode=disable or ?sslrootcert=/FILE";
    case "websocket":
      return "ws://HOST:PORT or wss://HOST, with a path and a query if it wants them, without a user and a fragment";
    case "list":
      return describeList(setting.of, topics);
    default:
      return unreachable(setting, "kind of setting");
  }
}

export function asText<Value>(raw: unknown, parse: (text: string) => Value | undefined): Value | undefined {
  return typeof raw === "string" ? parse(raw) : undefined;
}

export function inRange(
  value: number | undefined,
  min: number | undefined,
  max: number | undefined,
): number | undefined {
  if (value === undefined || min === undefined || max === undefined) return undefined;
  return value >= min && value <= max ? value : undefined;
}

function parseInteger(raw: unknown): number | undefined {
  const value = typeof raw === "string" && /^-?\d{1,15}$/.test(raw) ? Number(raw) : raw;
  return typeof value === "number" && Number.isSafeInteger(value) ? value : undefined;
}

function parseBoolean(raw: unknown): boolean | undefined {
  if (typeof raw === "boolean") return raw;
  return raw === "true" || raw === "false" ? raw === "true" : undefined;
}

function parsePath(text: string, directory: string): string | undefined {
  if (text === "" || text.length > PATH_MAX_CHARS || text.includes("\0")) return undefined;
  return isAbsolute(text) ? text : resolve(directory, text);
}

function parseAddressText(
  text: string,
  { portZero, ofThisMachine = false }: { readonly portZero: boolean; readonly ofThisMachine?: boolean },
): string | undefined {
  const address = parseAddress(text);
  if (address === undefined || (ofThisMachine && !isLoopback(address.host))) return undefined;
  return portZero || address.port > 0 ? text : undefined;
}

function parseAddresses(raw: unknown, max: number): readonly string[] | undefined {
  // A flag that is repeated comes as a list, and each time may itself name several.
  const texts: unknown[] = Array.isArray(raw) ? raw : [raw];
  const lists = texts.map((text) =>
    typeof text === "string"
      ? parseList(text, (one) => parseAddressText(one, { portZero: false }))
      : undefined,
  );
  const addresses = lists.flatMap((list) => list ?? []);
  const isWhole = !lists.includes(undefined) && new Set(addresses).size === addresses.length;
  return isWhole && addresses.length > 0 && addresses.length <= max ? addresses : undefined;
}

type EntryKind = Extract<ValueRule, { readonly kind: "list" }>["of"];

function describeList(of: EntryKind, topics: readonly string[]): string {
  if (of === "path") return "a list of paths";
  return of === "host" ? "a list of DNS names and IP addresses" : `a list of ${topics.join(", ")}`;
}

function parseEntry(of: EntryKind, text: string, context: ValueContext): string | undefined {
  if (of === "path") return parsePath(text, context.directory);
  const allowed = of === "host" ? isHost(text) : context.topics.includes(text);
  return allowed ? text : undefined;
}

function parseList(raw: unknown, parse: (text: string) => string | undefined): readonly string[] | undefined {
  const entries: unknown = typeof raw === "string" ? raw.split(",").map((entry) => entry.trim()) : raw;
  if (!Array.isArray(entries)) return undefined;
  const texts = entries
    .map((entry: unknown) => asText(entry, parse))
    .filter((entry): entry is string => entry !== undefined);
  return texts.length === entries.length ? texts : undefined;
}

const UNITS_BYTES = { GiB: 2 ** 30, MiB: 2 ** 20, KiB: 2 ** 10, B: 1 };

/**
 * Bytes, of a number and a binary unit (`"512B"`, `"64KiB"`, `"16MiB"`, `"1GiB"`); undefined when the text is no such size.
 * @internal
 */
export function parseSizeBytes(text: string): number | undefined {
  return parseQuantity(text, UNITS_BYTES);
}
