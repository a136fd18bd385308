// Messages of the protocol of `@statelyai/inspect` as a program sends them, read within bounds. They are text of a stranger: each field is
// looked at, and whatever else a message has is left alone.
import { boundedJson } from "./bounded-json.ts";

interface Said {
  readonly sessionId: string;
  /** By the program's clock; null where that is no time. */
  readonly createdAtMs: number | null;
}

export type StatelyMessage =
  | (Said & {
      readonly kind: "actor";
      readonly parentId: string | null;
      readonly name: string;
      /** JSON in a text, or null when the actor has none. */
      readonly definition: string | null;
      readonly value: string;
      readonly status: string;
    })
  | (Said & { readonly kind: "event"; readonly event: string; readonly detail: string })
  | (Said & {
      readonly kind: "snapshot";
      readonly event: string;
      readonly value: string;
      readonly status: string;
      readonly detail: string;
    });

export type ReadMessage = StatelyMessage | { readonly kind: "strange"; readonly why: string };

const NAME_CHARACTERS_MAX = 200;
const VALUE_CHARACTERS_MAX = 500;
const VALUE_DEPTH_MAX = 100;
const DETAIL_CHARACTERS_MAX = 600;

type JsonObject = Readonly<Record<string, unknown>>;

export function readMessage(text: string): ReadMessage {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return { kind: "strange", why: "messages that are no JSON" };
  }
  if (!isObject(message) || typeof message["_version"] !== "string")
    return { kind: "strange", why: "messages of another protocol" };
  const { sessionId: session, createdAt, type } = message;
  if (typeof session !== "string" || session === "" || session.length > NAME_CHARACTERS_MAX)
    return { kind: "strange", why: "messages that name no actor" };
  const said = { sessionId: session, createdAtMs: timeOf(createdAt) };
  switch (type) {
    case "@xstate.actor":
      return { kind: "actor", ...said, ...actorIn(message) };
    case "@xstate.event":
      return { kind: "event", ...said, ...eventIn(message), detail: detailOf(message["event"]) };
    case "@xstate.snapshot": {
      const snapshot = objectIn(message, "snapshot");
      return {
        ...{ kind: "snapshot", ...said, ...eventIn(message), ...standingOf(snapshot) },
        detail: detailOf(shownOf(snapshot)),
      };
    }
    default:
      return { kind: "strange", why: "messages of a kind that is not known here" };
  }
}

function actorIn(
  message: JsonObject,
): Pick<Extract<StatelyMessage, { kind: "actor" }>, "parentId" | "name" | "definition" | "value" | "status"> {
  const { parentId, name, definition } = message;
  return {
    parentId: typeof parentId === "string" && parentId.length <= NAME_CHARACTERS_MAX ? parentId : null,
    name: typeof name === "string" ? cut(name, NAME_CHARACTERS_MAX) : "",
    definition: typeof definition === "string" ? definition : null,
    ...standingOf(objectIn(message, "snapshot")),
  };
}

function eventIn(message: JsonObject): { readonly event: string } {
  const { type } = objectIn(message, "event");
  return { event: typeof type === "string" ? cut(type, NAME_CHARACTERS_MAX) : "" };
}

function standingOf({ value, status }: JsonObject): { readonly value: string; readonly status: string } {
  const known = typeof status === "string" ? cut(status, NAME_CHARACTERS_MAX) : "active";
  return { value: cut(activePaths(value), VALUE_CHARACTERS_MAX), status: known };
}

/** The context of a snapshot, and how it has ended. */
function shownOf({ context, output, error }: JsonObject): unknown {
  if (output === undefined && error === undefined) return context ?? {};
  return { context, ...(output !== undefined && { output }), ...(error !== undefined && { error }) };
}

/** The paths of the innermost states, as a chart has them, with `+` between; the value may be anything. */
function activePaths(value: unknown): string {
  let text = "";
  const add = (inner: unknown, path: string, depth: number): void => {
    if (text.length + path.length > VALUE_CHARACTERS_MAX || depth > VALUE_DEPTH_MAX) return;
    const start = path === "" ? "" : `${path}.`;
    if (typeof inner === "string") return void (text += `${text === "" ? "" : "+"}${start}${escaped(inner)}`);
    if (!isObject(inner)) return;
    let isEmpty = true;
    // Not by entries: there may be a million.
    for (const key in inner) {
      if (text.length > VALUE_CHARACTERS_MAX) return;
      isEmpty = false;
      add(inner[key], start + escaped(key), depth + 1);
    }
    if (isEmpty && path !== "") text += `${text === "" ? "" : "+"}${path}`;
  };
  add(value, "", 0);
  return text;
}

/** The dot between keys says where one ends. */
function escaped(key: string): string {
  return key.slice(0, VALUE_CHARACTERS_MAX).replace(/[.\\]/g, "\\$&");
}

function detailOf(value: unknown): string {
  return boundedJson(value, DETAIL_CHARACTERS_MAX);
}

function timeOf(createdAt: unknown): number | null {
  const ms = typeof createdAt === "string" || typeof createdAt === "number" ? Number(createdAt) : NaN;
  return Number.isFinite(ms) ? ms : null;
}

function cut(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1)}…`;
}

function objectIn(message: JsonObject, field: string): JsonObject {
  const value = message[field];
  return isObject(value) ? value : {};
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
