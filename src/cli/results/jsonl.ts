// Results as JSON, an object a line. The schema stands in docs/results.md, and fields are only ever added to it.
import { isoTime } from "../../base/clock.ts";
import type { Result, ResultError } from "../../client/results.ts";
import { jsonField } from "./value.ts";

/** The object, with its ending. */
export function jsonLine(result: Result): string {
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
