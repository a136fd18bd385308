// The formats of results: what stands at the head of a file, and the line of one result. Outputs and inputs are taken over as they are: JSON
// stays the text that it was, because reading and printing it again would round 12345678901234567890; what is no JSON is a text, and what
// is no text base64.
import { isUtf8 } from "node:buffer";
import { isoTime } from "../../base/clock.ts";
import { originObject } from "../../client/origin.ts";
import type { Result, ResultError } from "../../client/results.ts";

export const FORMAT_NAMES = ["jsonl", "csv", "openai"] as const;
export type FormatName = (typeof FORMAT_NAMES)[number];

export interface Format {
  /** The first lines of each file, with their endings. */
  readonly header: string;
  /** One line, with its ending. */
  readonly line: (result: Result) => string;
}

const COLUMNS = [
  "item",
  "id",
  "ok",
  "output",
  "attempt",
  "worker",
  "plugin_version",
  "started_at",
  "duration_ms",
  "finished_at",
  "error_class",
  "error_message",
] as const;
const ENDING = "\r\n";
const FORMULA = /^[=+\-@\t\r]/;
const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const ID_DIGITS = 24;
const RESPONSE_FIELDS: ReadonlySet<string> = new Set(["status_code", "request_id", "body"]);

/** Bytes, as they are understood. `text` of JSON is one line. */
export type Value =
  | { readonly kind: "json"; readonly text: string }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "binary"; readonly base64: string };

/** Why `--json` does not go with them, in a sentence: lines on standard output are of one schema then. */
export function jsonRefusal(format: FormatName, output: string | undefined): string | undefined {
  return output === undefined && format !== "jsonl"
    ? "--json on standard output is --format jsonl"
    : undefined;
}

/** Parts of lines beside those that always stand there. */
export interface FormatOptions {
  readonly withInput?: boolean;
  /** Items that other items have made stand among the results. */
  readonly inside?: boolean;
}

export function formatOf(name: FormatName, options: FormatOptions = {}): Format {
  switch (name) {
    case "jsonl":
      return { header: "", line: jsonLine };
    // A table for spreadsheets has a line of titles (RFC 4180).
    case "csv":
      return {
        header: [...COLUMNS, ...moreColumns(options)].join(",") + ENDING,
        line: (result) => csvLine(result, options),
      };
    case "openai":
      return { header: "", line: openaiLine };
  }
}

/** A result as an object of JSON, with its ending. The schema stands in docs/results.md, and fields are only ever added to it. */
function jsonLine(result: Result): string {
  const { item, id, ok, output, error, attempt, worker, pluginVersion, startedAtMs, input } = result;
  const outcome = error === undefined ? jsonField("output", output) : `,"error":${errorText(error)}`;
  const whence = JSON.stringify({
    attempt,
    worker: worker ?? null,
    plugin_version: pluginVersion ?? null,
    started_at: startedAtMs === undefined ? null : isoTime(startedAtMs),
    duration_ms: result.durationMs ?? null,
    finished_at: isoTime(result.finishedAtMs),
  });
  const head = `{"item":"${item}","id":${JSON.stringify(id ?? null)},"ok":${String(ok)}${outcome}`;
  const made = result.origin === undefined ? "" : `,"origin":${JSON.stringify(originObject(result.origin))}`;
  const tail = `${input === undefined ? "" : jsonField("input", input)}${made}`;
  return `${head},${whence.slice(1, -1)}${tail}}\n`;
}

/** A server's answer is taken over as it is, like an output. */
function errorText({ class: failureClass, message, response }: ResultError): string {
  const head = JSON.stringify({ class: failureClass, message });
  return response === undefined ? head : `${head.slice(0, -1)}${jsonField("response", response)}}`;
}

export function valueOf(bytes: Uint8Array): Value {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!isUtf8(buffer)) return { kind: "binary", base64: buffer.toString("base64") };
  const text = buffer.toString("utf8");
  return isJson(text) ? { kind: "json", text: onOneLine(text) } : { kind: "text", text };
}

/** A field of an object of JSON, with its comma before it: `,"output":…`, or `,"output_base64":"…"`. */
function jsonField(name: string, bytes: Uint8Array): string {
  const value = valueOf(bytes);
  switch (value.kind) {
    case "json":
      return `,"${name}":${value.text}`;
    case "text":
      return `,"${name}":${JSON.stringify(value.text)}`;
    case "binary":
      return `,"${name}_base64":"${value.base64}"`;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** In JSON an ending of a line stands only between tokens, where a space says the same. */
function onOneLine(json: string): string {
  return json.trim().replace(/[\r\n]+/g, " ");
}

function moreColumns({ withInput = false, inside = false }: FormatOptions): ("input" | "origin")[] {
  return [...(withInput ? ["input" as const] : []), ...(inside ? ["origin" as const] : [])];
}

/** A cell that a spreadsheet would take for a formula begins with an apostrophe, which it hides. */
function csvLine(result: Result, options: FormatOptions): string {
  const { startedAtMs, error, origin } = result;
  const cells: Record<(typeof COLUMNS)[number] | "input" | "origin", string> = {
    item: result.item,
    id: textCell(result.id ?? ""),
    ok: String(result.ok),
    output: result.ok ? textCell(csvTextOf(result.output)) : "",
    attempt: String(result.attempt),
    worker: result.worker ?? "",
    plugin_version: textCell(result.pluginVersion ?? ""),
    started_at: startedAtMs === undefined ? "" : isoTime(startedAtMs),
    duration_ms: String(result.durationMs ?? ""),
    finished_at: isoTime(result.finishedAtMs),
    error_class: error?.class ?? "",
    error_message: textCell(error?.message ?? ""),
    input: textCell(csvTextOf(result.input ?? new Uint8Array())),
    origin: origin === undefined ? "" : textCell(JSON.stringify(originObject(origin))),
  };
  return [...COLUMNS, ...moreColumns(options)].map((column) => cells[column]).join(",") + ENDING;
}

/** A text of JSON without its quotes and escapes, other JSON as it stands, and any other text as it is. */
function csvTextOf(bytes: Uint8Array): string {
  const value = valueOf(bytes);
  switch (value.kind) {
    case "json":
      return value.text.startsWith('"') ? String(JSON.parse(value.text)) : value.text;
    case "text":
      return value.text;
    case "binary":
      return `base64:${value.base64}`;
  }
}

function textCell(text: string): string {
  const harmless = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]|^\s|\s$/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/**
 * An object as the output and error files of the OpenAI Batch API have it, with its ending, so that what reads those reads these. An output
 * of the http backend already is a response; any other becomes the body of one.
 */
function openaiLine(result: Result): string {
  const { item, id, output, error, pluginVersion } = result;
  const refused = error?.response && serverAnswer(error.response);
  const said =
    error === undefined || refused !== undefined ? null : { code: error.class, message: error.message };
  const fields = [
    `"id":"batch_req_${item.slice(0, ID_DIGITS)}"`,
    `"custom_id":${JSON.stringify(id ?? item)}`,
    `"response":${error === undefined ? response(output, item) : (refused ?? "null")}`,
    `"error":${JSON.stringify(said)}`,
    // Readers of such files leave fields alone that they do not know.
    `"plugin_version":${JSON.stringify(pluginVersion ?? null)}`,
  ];
  return `{${fields.join(",")}}\n`;
}

function response(output: Uint8Array, item: string): string {
  const value = valueOf(output);
  if (value.kind === "json" && isResponse(value.text)) return value.text;
  const body = value.kind === "binary" ? { base64: value.base64 } : value.text;
  const text = value.kind === "json" ? value.text : JSON.stringify(body);
  return `{"status_code":200,"request_id":"${item}","body":${text}}`;
}

/** A server's answer in place of a result; undefined when it is not of that form. */
function serverAnswer(bytes: Uint8Array): string | undefined {
  const value = valueOf(bytes);
  return value.kind === "json" && isResponse(value.text) ? value.text : undefined;
}

function isResponse(json: string): boolean {
  if (!json.startsWith("{")) return false;
  const object = JSON.parse(json) as Record<string, unknown>;
  return (
    Number.isInteger(object["status_code"]) &&
    "body" in object &&
    Object.keys(object).every((name) => RESPONSE_FIELDS.has(name))
  );
}
