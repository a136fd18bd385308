// Rules for a manifest's table `[http]` beyond the type of each value.
import type { HttpSpec } from "./manifest-fields.ts";

/** A value that is not taken: its key below `[http]`, and what is allowed there. */
export interface HttpRefusal {
  readonly key: string;
  readonly allowed: string;
}

const URL_ALLOWED =
  'an address that begins with http:// or https://, without a password, such as "http://127.0.0.1:8000/v1"';
const POINTER = /^(?:\/(?:[^~/]|~[01])*)+$/;

/** The first value that is not taken; undefined when all are. */
export function refusalOfHttp(spec: HttpSpec): HttpRefusal | undefined {
  const { url, path, readyUrl, launch, output, headers, format, body } = spec;
  if (!isHttpUrl(url)) return { key: "url", allowed: URL_ALLOWED };
  if (path !== undefined && !/^\/(?!\/)[^\s#]*$/.test(path))
    return { key: "path", allowed: 'a path that begins with /, such as "/chat/completions"' };
  if (output !== "body" && output !== "message" && !isPointer(output))
    return { key: "output", allowed: '"body", "message", or a JSON pointer such as "/choices/0/text"' };
  if (Object.values(headers).some((text) => /[\p{Cc}\u0100-\u{10ffff}]/u.test(text)))
    return { key: "headers", allowed: "texts of one line in Latin letters" };
  if (launch === undefined && url.includes("{port}"))
    return { key: "url", allowed: "a port in digits, because {port} is for a server that launch starts" };
  if (format === "openai-batch" && Object.keys(body).length > 0)
    return { key: "body", allowed: 'no template beside format = "openai-batch": a line has its body' };
  if (readyUrl === undefined) return undefined;
  if (launch === undefined) return { key: "ready_url", allowed: "only beside launch" };
  return isHttpUrl(readyUrl) ? undefined : { key: "ready_url", allowed: URL_ALLOWED };
}

/** Path and query of an address of the manifest, the path without slashes at its end: all of it that belongs to the task. */
export function pathOfUrl(url: string): string {
  const text = withPort(url, 1);
  if (!URL.canParse(text)) return url;
  const { pathname, search } = new URL(text);
  return pathname.replace(/\/+$/, "") + search;
}

/** `{port}` filled in. */
export function withPort(text: string, port: number): string {
  return text.replaceAll("{port}", String(port));
}

/** Whether a text is a JSON pointer to a part of something. */
export function isPointer(text: string): boolean {
  return POINTER.test(text);
}

function isHttpUrl(url: string): boolean {
  const text = withPort(url, 1);
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, hash } = new URL(text);
  return (protocol === "http:" || protocol === "https:") && username + password + hash === "";
}
