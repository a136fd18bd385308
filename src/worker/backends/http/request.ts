// Makes the request of an item, by what the manifest says.
import { formatJson, isJsonObject, parseJson, memberOf } from "../../../base/exact-json.ts";
import type { JsonObject } from "../../../base/exact-json.ts";
import type { HttpSpec } from "../../../config/manifest-fields.ts";
import { batchLineOf, batchPath } from "./batch-line.ts";
import type { BatchLine } from "./batch-line.ts";

export interface ItemRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Undefined: the method has none. */
  readonly body: Uint8Array | undefined;
  readonly contentType: string;
  readonly isBatch: boolean;
  /** An answer may come in pieces that make one object. */
  readonly asksForStream: boolean;
}

export type RequestOrRefusal =
  | { readonly kind: "request"; readonly request: ItemRequest }
  /** The item cannot be asked in this way. */
  | { readonly kind: "refused"; readonly reason: string };

/** By what a body holds, what it is a request for. */
const ENDPOINTS = { messages: "/chat/completions", prompt: "/completions", input: "/embeddings" } as const;
/** Bodies of which the answer can come in pieces have one of these. */
const STREAMED = ["messages", "prompt"];
const BODILESS = ["GET", "DELETE"];
const JSON_TYPE = "application/json";

/** `basePath` is the path of `spec.url`, without slashes at its end. */
export function requestOf(spec: HttpSpec, basePath: string, payload: Uint8Array): RequestOrRefusal {
  const text = textOf(payload);
  const json = text === undefined ? undefined : parseJson(text);
  const hasTemplate = Object.keys(spec.body).length > 0;
  const line = spec.format === "plain" || hasTemplate ? undefined : batchLineOf(json);
  if (line === undefined && spec.format === "openai-batch")
    return refused(
      "it is not a line of an OpenAI Batch file: custom_id, method, url and body, and nothing else",
    );
  if (line !== undefined) return batchRequestOf(spec, basePath, line);
  try {
    const item = json ?? text;
    const body = hasTemplate ? fillValue(spec.body, item) : json;
    const made =
      hasTemplate || isJsonObject(json) ? bodyOf(spec, body, hasTemplate, payload) : rawBody(json, payload);
    const path = basePath + pathOf(spec, basePath, item, body);
    const { method } = spec;
    const sent = BODILESS.includes(method) ? { ...made, body: undefined } : made;
    return { kind: "request", request: { ...sent, method, path: path === "" ? "/" : path, isBatch: false } };
  } catch (error) {
    if (!(error instanceof MissingField)) throw error;
    return refused(
      `it has no ${error.field === "" ? "text" : `field ${error.field}`}, which the request needs`,
    );
  }
}

/** The line is whole as it is, but for whose model it names. */
function batchRequestOf(spec: HttpSpec, basePath: string, line: BatchLine): RequestOrRefusal {
  const { method, url } = line;
  if (method !== "POST") return refused(`a Batch request has the method POST, and not ${method}`);
  const body = bodyOf({ ...spec, parameters: {} }, line.body, true);
  return { kind: "request", request: { ...body, method, path: batchPath(basePath, url), isBatch: true } };
}

type Body = Pick<ItemRequest, "body" | "contentType" | "asksForStream">;

/** With what the manifest adds. The bytes of the payload stay as they are when there is nothing to add. */
function bodyOf(spec: HttpSpec, value: unknown, isMade: boolean, payload?: Uint8Array): Body {
  const added = isJsonObject(value) ? withAdditions(spec, value) : value;
  const asksForStream = isJsonObject(added) && added["stream"] === true;
  const body = added === value && !isMade && payload !== undefined ? payload : Buffer.from(formatJson(added));
  return { body, contentType: JSON_TYPE, asksForStream };
}

function withAdditions(spec: HttpSpec, body: JsonObject): JsonObject {
  const { parameters, model } = spec;
  const stream = spec.stream && STREAMED.some((key) => Object.hasOwn(body, key));
  if (Object.keys(parameters).length === 0 && model === undefined && !stream) return body;
  const streaming = { stream: true, stream_options: body["stream_options"] ?? { include_usage: true } };
  return { ...parameters, ...body, ...(model !== undefined && { model }), ...(stream && streaming) };
}

function rawBody(json: unknown, payload: Uint8Array): Body {
  const contentType = json === undefined ? "text/plain; charset=utf-8" : JSON_TYPE;
  return { body: payload, contentType, asksForStream: false };
}

function pathOf({ path }: HttpSpec, basePath: string, item: unknown, body: unknown): string {
  if (path !== undefined) return fillText(path, item, encodeURIComponent);
  if (!basePath.endsWith("/v1") || !isJsonObject(body)) return "";
  const [, endpoint = ""] = Object.entries(ENDPOINTS).find(([key]) => Object.hasOwn(body, key)) ?? [];
  return endpoint;
}

function textOf(payload: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(payload);
  } catch {
    return undefined;
  }
}

function refused(reason: string): RequestOrRefusal {
  return { kind: "refused", reason };
}

/** The item lacks what the template names. */
class MissingField extends Error {
  readonly field: string;

  constructor(field: string) {
    super(`the item has no field ${field}`);
    this.field = field;
  }
}

const PLACEHOLDER = /\{((?:\.[\w-]+)*)\}/g;
const WHOLE = /^\{((?:\.[\w-]+)*)\}$/;

/**
 * A text that is one placeholder becomes the value itself, whatever it is; within a longer text, and in a list or table,
 * placeholders become text: a string as it is, anything else as JSON. Throws MissingField.
 */
function fillValue(template: unknown, item: unknown): unknown {
  if (typeof template === "string") {
    const whole = WHOLE.exec(template)?.[1];
    return whole === undefined ? fillText(template, item) : fieldOf(item, whole);
  }
  if (Array.isArray(template)) return template.map((one) => fillValue(one, item));
  if (!isJsonObject(template)) return template;
  return Object.fromEntries(Object.entries(template).map(([name, value]) => [name, fillValue(value, item)]));
}

/** Throws MissingField. */
function fillText(template: string, item: unknown, encode = (text: string): string => text): string {
  return template.replace(PLACEHOLDER, (_whole, path: string) => encode(wordOf(fieldOf(item, path))));
}

function fieldOf(item: unknown, path: string): unknown {
  let value = item;
  for (const name of path.split(".").slice(1)) value = memberOf(value, name);
  if (value === undefined) throw new MissingField(path.slice(1));
  return value;
}

function wordOf(value: unknown): string {
  return typeof value === "string" ? value : formatJson(value);
}
