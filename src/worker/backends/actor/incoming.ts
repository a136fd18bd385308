// The items of an actor, read: what made each of them says how its payload is to be taken. Events of XState's own come from inside alone.
import { isEvent } from "../../../base/actor-address.ts";
import { isJsonObject } from "../../../base/exact-json.ts";
import type { ComingOrigin } from "../key-asks.ts";
import type { Incoming } from "./actor-step.ts";
import { AFTER } from "./step-record.ts";

/** Undefined for what is no event. */
export function readIncoming(origin: ComingOrigin | undefined, payload: Uint8Array): Incoming | undefined {
  const text = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString("utf8");
  switch (origin?.kind) {
    case "start":
      return { kind: "start", source: origin.source, input: readValue(text) };
    case "outcome":
      return { kind: "outcome", id: origin.id, output: readValue(text) };
    case "failure":
      return { kind: "failure", id: origin.id, message: text };
    case "timer":
    case "mail":
    case undefined: {
      const event = readJson(text);
      const isAfter = origin?.kind === "timer" && isAfterEvent(event);
      if (!isAfter && !isEvent(event)) return undefined;
      return { kind: "event", event, hasReferences: origin !== undefined };
    }
  }
}

/** JSON, or nothing for undefined. */
export function readValue(text: string): unknown {
  return text === "" ? undefined : JSON.parse(text);
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isAfterEvent(value: unknown): value is { readonly type: string } {
  return isJsonObject(value) && typeof value["type"] === "string" && value["type"].startsWith(AFTER);
}
