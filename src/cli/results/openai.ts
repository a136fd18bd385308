// Results as the output and error files of the OpenAI Batch API have them, so that what reads those reads these. An output
// of the http backend already is a response; any other becomes the body of one.
import type { Result } from "../../client/results.ts";
import { valueOf } from "./value.ts";

const ID_DIGITS = 24;
const RESPONSE_FIELDS: ReadonlySet<string> = new Set(["status_code", "request_id", "body"]);

/** The object, with its ending. */
export function openaiLine(result: Result): string {
  const { item, id, output, error } = result;
  const refused = error?.response && refusal(error.response);
  const said =
    error === undefined || refused !== undefined ? null : { code: error.class, message: error.message };
  const fields = [
    `"id":"batch_req_${item.slice(0, ID_DIGITS)}"`,
    `"custom_id":${JSON.stringify(id ?? item)}`,
    `"response":${error === undefined ? response(output, item) : (refused ?? "null")}`,
    `"error":${JSON.stringify(said)}`,
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
function refusal(bytes: Uint8Array): string | undefined {
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
