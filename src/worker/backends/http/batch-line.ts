// Lines of OpenAI Batch files: recognized as items, and answered in the form from which the output and error files are made.
import { formatJson, isJsonObject } from "../../../base/exact-json.ts";
import type { JsonObject } from "../../../base/exact-json.ts";

export interface BatchLine {
  readonly method: string;
  /** A path on the server, beginning with `/`. */
  readonly url: string;
  readonly body: JsonObject;
}

const KEYS = ["body", "custom_id", "method", "url"];

/** An object with exactly the keys of such a line, of their types; undefined for anything else. */
export function batchLineOf(item: unknown): BatchLine | undefined {
  if (!isJsonObject(item)) return undefined;
  if (Object.keys(item).sort().join() !== KEYS.join()) return undefined;
  const { custom_id: customId, method, url, body } = item;
  if (typeof customId !== "string" || typeof method !== "string" || typeof url !== "string") return undefined;
  return /^\/(?!\/)[^\s#]*$/.test(url) && isJsonObject(body) ? { method, url, body } : undefined;
}

/**
 * Where the line's path is on a server whose API begins at `basePath`: `/v1/chat/completions` below `/v1`, `/openai/v1`, the
 * root or the same path is one and the same.
 */
export function batchPath(basePath: string, url: string): string {
  if (basePath.endsWith(url)) return basePath;
  const root =
    basePath.endsWith("/v1") && url.startsWith("/v1/") ? basePath.slice(0, -"/v1".length) : basePath;
  return root + url;
}

export interface BatchAnswer {
  readonly status: number;
  readonly requestId: string | undefined;
  /** JSON. */
  readonly body: string;
}

/** The text under `response` in an output or error file. */
export function formatBatchAnswer({ status, requestId, body }: BatchAnswer): string {
  return `{"status_code":${status},"request_id":${formatJson(requestId ?? null)},"body":${body}}`;
}

/** The same in at most `maxCharacters`: a body that is too long or not JSON becomes an error object with the start of it. */
export function formatBatchRefusal(
  answer: Omit<BatchAnswer, "body"> & { readonly text: string; readonly isJson: boolean },
  maxCharacters: number,
): string {
  const { text, isJson } = answer;
  const whole = isJson ? formatBatchAnswer({ ...answer, body: text.trim() }) : undefined;
  if (whole !== undefined && whole.length <= maxCharacters) return whole;
  // A character is up to six in JSON.
  const message = text.slice(0, Math.floor(maxCharacters / 8)).toWellFormed();
  return formatBatchAnswer({ ...answer, body: formatJson({ error: { message } }) });
}
