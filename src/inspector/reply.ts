// Answers of the server of the page: each with the same strict headers, whole, and on a connection of its own.
//
// Keeps true: nothing that the page shows is loaded from anywhere else, runs but its own script, or stands in a frame of another page.
import type { ServerResponse } from "node:http";
import { words } from "../observe/loopback-server.ts";
import type { Page } from "../observe/loopback-server.ts";
import type { Refusal } from "./entrance.ts";
import type { Done } from "./page-messages.ts";

/** Pictures of charts are the only text that becomes a tree: the page has one policy for them, by this name. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  ...["script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
  ...["require-trusted-types-for 'script'", "trusted-types chart"],
].join("; ");

const HEADERS = {
  "content-security-policy": CONTENT_SECURITY_POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
} as const;

export type Reply = Page & { readonly headers?: Readonly<Record<string, string>> };

/** Begins an answer; also one that goes on. */
export function begin(
  response: ServerResponse,
  status: number,
  contentType: string,
  more: Reply["headers"] = {},
): void {
  // One call on each connection: the rest of a request is never read as another.
  response.shouldKeepAlive = false;
  response.writeHead(status, { ...HEADERS, "content-type": contentType, ...more });
}

export function send(response: ServerResponse, { status, contentType, body, headers }: Reply): void {
  const bytes = Buffer.from(body);
  begin(response, status, contentType, { ...headers, "content-length": String(bytes.length) });
  response.end(bytes);
}

export function json(status: number, value: object): Reply {
  return { status, contentType: "application/json", body: `${JSON.stringify(value)}\n` };
}

export function failed(status: number, message: string, hint: string): Reply {
  const done: Done = { ok: false, error: { message, hint } };
  return json(status, done);
}

export function refused({ status, message, hint }: Refusal): Reply {
  return failed(status, message, hint);
}

/** For a person who has come to the door of the page. */
export function refusedPage({ status, message, hint }: Refusal): Reply {
  return words(status, `${message}: ${hint}.`);
}

export function methodRefused(allowed: string): Reply {
  return {
    ...failed(405, `only ${allowed} is answered here`, "see docs/inspect.md"),
    headers: { allow: allowed },
  };
}
