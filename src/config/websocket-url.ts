// The URL of a WebSocket server. A token may stand in its path or query: messages show its host alone.
import { isLoopback } from "../base/address.ts";

export interface WebSocketUrl {
  /** `host:port` as far as it names one, without what may be a secret. */
  readonly shown: string;
  /** Whether it means the machine that uses it. */
  readonly isOfThisMachine: boolean;
}

const CHARACTERS_MAX = 2_048;

/** Undefined when the text is none, or has parts that such a URL cannot have. */
export function parseWebSocketUrl(text: string): WebSocketUrl | undefined {
  const url = text.length <= CHARACTERS_MAX ? URL.parse(text) : null;
  if (url === null || (url.protocol !== "ws:" && url.protocol !== "wss:")) return undefined;
  if (url.username !== "" || url.password !== "" || url.hash !== "" || url.hostname === "") return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return { shown: `${url.protocol}//${url.host}`, isOfThisMachine: isLoopback(host) };
}
