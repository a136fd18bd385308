// The output of an item out of an answer, and its error out of a refusal: a message, and the answer for programs.
import { formatJson, isJsonObject, memberOf, parseJson } from "../../../base/exact-json.ts";
import { LIMITS } from "../../../config/limits.ts";
import type { Outcome } from "../backend.ts";
import { formatBatchAnswer, formatBatchRefusal } from "./batch-line.ts";
import type { Answer } from "../../../transport/exchange.ts";
import { withoutSecrets } from "./headers.ts";

export interface OutputRule {
  /** As the manifest says: `body`, `message`, or a JSON pointer. */
  readonly output: string;
  readonly isBatch: boolean;
  readonly maxOutputBytes: number;
  readonly secrets: readonly string[];
}

/** Refusals that speak of the request and of nothing else: another server says the same. A key or an address may be another. */
const OF_THE_REQUEST: readonly number[] = [400, 413, 414, 422];
/** In UTF-8 below what a worker keeps of a refusal. */
const RESPONSE_MAX_CHARACTERS = 4_000;
const EXCERPT_MAX_CHARACTERS = 2_000;
const MESSAGE_POINTER = "/choices/0/message/content";
/** As OpenAI and its imitators name their requests. */
const REQUEST_ID = "x-request-id";

/** The outcome of an answer with a status of 2xx. */
export function outputOf(answer: Answer, rule: OutputRule): Outcome {
  const { output, isBatch, maxOutputBytes } = rule;
  const success = (bytes: Uint8Array): Outcome =>
    bytes.length <= maxOutputBytes ? { kind: "success", output: bytes } : { kind: "too_large" };
  if (!isBatch && output === "body") return success(answer.body);
  const text = Buffer.from(answer.body).toString();
  const json = parseJson(text);
  if (json === undefined) return refuse(`answered ${answer.status}, but not JSON: ${excerpt(text)}`, rule);
  if (isBatch) {
    const { status, header } = answer;
    return success(
      Buffer.from(formatBatchAnswer({ status, requestId: header(REQUEST_ID), body: text.trim() })),
    );
  }
  const pointer = output === "message" ? MESSAGE_POINTER : output;
  const value = atPointer(json, pointer);
  if (value === undefined) return refuse(`the answer has nothing at ${pointer}: ${excerpt(text)}`, rule);
  return success(Buffer.from(formatJson(value)));
}

/** The outcome of an answer that says no. */
export function refusalOf(answer: Answer, rule: OutputRule): Outcome {
  const { status, statusText, header } = answer;
  const text = withoutSecrets(Buffer.from(answer.body).toString(), rule.secrets);
  const json = refusalJson(text);
  const location = status >= 300 && status < 400 ? header("location") : undefined;
  const reason = location === undefined ? said(text, json) : `to ${location}, which is not followed`;
  const shown = { status, requestId: header(REQUEST_ID), text, isJson: json !== undefined };
  return {
    ...refuse(`${status} ${statusText}${reason === "" ? "" : `: ${reason}`}`, rule),
    ...(OF_THE_REQUEST.includes(status) && { isPermanent: true }),
    response: Buffer.from(formatBatchRefusal(shown, RESPONSE_MAX_CHARACTERS)),
  };
}

/** Whether a 429 says that there is nothing left to wait for. */
export function isQuotaSpent(answer: Answer): boolean {
  const error = memberOf(refusalJson(Buffer.from(answer.body).toString()), "error");
  return [memberOf(error, "code"), memberOf(error, "type")].includes("insufficient_quota");
}

/** Undefined also for what is too long to be kept: reading it would hold up everything else that the worker does. */
function refusalJson(text: string): unknown {
  return text.length <= LIMITS.responseBytes ? parseJson(text) : undefined;
}

/** The server's own words, where the usual places have them. */
function said(text: string, json: unknown): string {
  if (!isJsonObject(json)) return excerpt(text);
  const { error, message, detail } = json;
  const words = [memberOf(error, "message"), error, message, detail].find((one) => typeof one === "string");
  return excerpt(words ?? text);
}

function excerpt(text: string): string {
  const trimmed = text.trim();
  return trimmed.length <= EXCERPT_MAX_CHARACTERS ? trimmed : `${trimmed.slice(0, EXCERPT_MAX_CHARACTERS)}…`;
}

function refuse(message: string, { secrets }: OutputRule): Outcome & { readonly kind: "error" } {
  return { kind: "error", message: withoutSecrets(message, secrets) };
}

/** The value at a JSON pointer; undefined when there is none. */
function atPointer(value: unknown, pointer: string): unknown {
  const names = pointer.split("/").slice(1);
  return names.reduce<unknown>(
    (at, name) => memberOf(at, name.replaceAll("~1", "/").replaceAll("~0", "~")),
    value,
  );
}
