// The formats of results by name: what stands at the head of a file, and the line of one result.
import { isoTime } from "../../base/clock.ts";
import type { Result, ResultError } from "../../client/results.ts";
import { csvHeader, csvLine } from "./csv.ts";
import { openaiLine } from "./openai.ts";
import { jsonField } from "./value.ts";

export const FORMAT_NAMES = ["jsonl", "csv", "openai"] as const;
export type FormatName = (typeof FORMAT_NAMES)[number];

export interface Format {
  /** The first lines of each file, with their endings. */
  readonly header: string;
  /** One line, with its ending. */
  readonly line: (result: Result) => string;
}

/** Why `--json` does not go with them, in a sentence: lines on standard output are of one schema then. */
export function jsonRefusal(format: FormatName, output: string | undefined): string | undefined {
  return output === undefined && format !== "jsonl"
    ? "--json on standard output is --format jsonl"
    : undefined;
}

export function formatOf(name: FormatName, withInput: boolean): Format {
  switch (name) {
    case "jsonl":
      return { header: "", line: jsonLine };
    case "csv":
      return { header: csvHeader(withInput), line: (result) => csvLine(result, withInput) };
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
  const tail = input === undefined ? "" : jsonField("input", input);
  return `${head},${whence.slice(1, -1)}${tail}}\n`;
}

/** A server's answer is taken over as it is, like an output. */
function errorText({ class: failureClass, message, response }: ResultError): string {
  const head = JSON.stringify({ class: failureClass, message });
  return response === undefined ? head : `${head.slice(0, -1)}${jsonField("response", response)}}`;
}
