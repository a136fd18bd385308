// The state of a durable actor, as it is stored: a machine's snapshot as JSON, with the version of its shape and a few facts beside it,
// so that those who only look at an actor need none of its code.
//
// Keeps true: a context that JSON does not hold exactly is named by its path, and never stored changed.
import type { StateValue } from "xstate";
import { jsonFields } from "../base/exact-json.ts";

/** A machine's snapshot without its children: as XState persists it. */
export interface ActorSnapshot {
  readonly status: string;
  readonly value: StateValue;
  readonly context: unknown;
  readonly output?: unknown;
  /** By the id of a history state, the ids of the states that it goes back to. */
  readonly historyValue?: Readonly<Record<string, readonly { readonly id: string }[]>>;
}

export interface ActorState {
  readonly type: string;
  /** `state_version` of the manifest with which it was written. */
  readonly version: number;
  /** Events that it is made of. */
  readonly events: number;
  /** The tags of the states that it is in, in order. */
  readonly tags: readonly string[];
  readonly snapshot: ActorSnapshot;
}

const FORMAT = 1;
const DEPTH_MAX = 64;

export function writeActorState({ type, version, events, tags, snapshot }: ActorState): Uint8Array {
  return Buffer.from(JSON.stringify({ actor: FORMAT, type, version, events, tags, snapshot }));
}

/** Undefined when the bytes are no state of an actor. */
export function readActorState(bytes: Uint8Array): ActorState | undefined {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  const { actor, type, version, events, tags, snapshot } = jsonFields(text);
  const isOurs =
    actor === FORMAT && typeof type === "string" && typeof snapshot === "object" && snapshot !== null;
  if (!isOurs || typeof version !== "number" || typeof events !== "number" || !Array.isArray(tags))
    return undefined;
  return { type, version, events, tags, snapshot: snapshot as unknown as ActorSnapshot };
}

/**
 * Why JSON would not give the value back as it is, with the place in it; undefined when it would. A member that is `undefined` may be
 * missing afterwards, for it reads the same.
 */
export function inexactness(value: unknown, path: string, depth = 0): string | undefined {
  if (value === null || typeof value === "string" || typeof value === "boolean") return undefined;
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `${path} is ${value}`;
  if (typeof value !== "object")
    return `${path} is ${value === undefined ? "undefined" : `a ${typeof value}`}`;
  if (depth > DEPTH_MAX) return `${path} is deeper than ${DEPTH_MAX} levels, or a cycle`;
  if (Array.isArray(value)) return inexactEntry(value, path, depth);
  if (!isPlain(value)) return `${path} is a ${nameOfClass(value)}`;
  if (Object.getOwnPropertySymbols(value).length > 0) return `${path} has a member that is named by a symbol`;
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const found = inexactness(member, `${path}.${name}`, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

function inexactEntry(list: readonly unknown[], path: string, depth: number): string | undefined {
  for (let at = 0; at < list.length; at++) {
    const found = inexactness(list[at], `${path}[${at}]`, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

function nameOfClass(value: object): string {
  const { constructor } = value as { readonly constructor?: { readonly name?: unknown } };
  return typeof constructor?.name === "string" && constructor.name !== ""
    ? constructor.name
    : "object of a class";
}
