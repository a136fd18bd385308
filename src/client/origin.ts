// The origin of an item that nobody submitted, as the library and `--json` have it.
import type { ItemOrigin } from "../gen/rollout/v1/work_pb.ts";

/** Undefined members do not apply. */
export interface Origin {
  /** `outcome` and `failure` are the end of an invocation or of a child; `start` is the first item of a child. */
  readonly kind: "mail" | "timer" | "outcome" | "failure" | "start" | "invocation" | "action" | "unknown";
  /** The actor that has sent it, started it, or invoked it. */
  readonly actor: string | undefined;
  /** The id of the timer, the invocation or the child, within the actor. */
  readonly id: string | undefined;
  /** By what name the machine has what is invoked or started. */
  readonly source: string | undefined;
  /** The type of a named action. */
  readonly type: string | undefined;
}

const NOTHING = { actor: undefined, id: undefined, source: undefined, type: undefined };

/** Undefined for an item that was submitted. */
export function originOf(wire: ItemOrigin | undefined): Origin | undefined {
  const from = wire?.from;
  switch (from?.case) {
    case "mail":
      return { ...NOTHING, kind: "mail", actor: from.value.key };
    case "timer":
      return { ...NOTHING, kind: "timer", id: from.value.id };
    case "outcome":
    case "failure":
      return { ...NOTHING, kind: from.case, id: from.value.id };
    case "start":
      return {
        ...NOTHING,
        kind: "start",
        actor: from.value.parent,
        id: from.value.id,
        source: from.value.source,
      };
    case "invocation":
      return {
        ...NOTHING,
        kind: "invocation",
        actor: from.value.key,
        id: from.value.id,
        source: from.value.source,
      };
    case "action":
      return { ...NOTHING, kind: "action", actor: from.value.key, type: from.value.type };
    case undefined:
      return wire === undefined ? undefined : { ...NOTHING, kind: "unknown" };
  }
}

/** The object of `--json`: null for what does not apply. */
export function originObject(origin: Origin | undefined): object | null {
  if (origin === undefined) return null;
  const { kind, actor = null, id = null, source = null, type = null } = origin;
  return { kind, actor, id, source, type };
}
