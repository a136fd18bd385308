// Parts of the wire that only actors have, there and back: the asks of a result, and the origin of an item that somebody has asked for.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  Final as FinalOnWire,
  ItemOrigin,
  ItemOriginSchema,
  Keyed,
  SetTimer,
} from "../../gen/rollout/v1/work_pb.ts";
import type { Asks, Final, SetTimer as Timer } from "../ledger/asks.ts";
import type { Origin } from "../ledger/origin.ts";
import { COUNT_MAX, countFrom } from "./messages.ts";

/** Undefined when it asks for nothing. */
export function readAsks(keyed: Keyed): Asks | undefined {
  const { stopped, cancelled, timers, invocations, children, sends, actions, final } = keyed;
  const lists = [stopped, cancelled, timers, invocations, children, sends, actions];
  if (final === undefined && lists.every(({ length }) => length === 0)) return undefined;
  return {
    stopped,
    cancelled,
    timers: timers.map(readTimer),
    invocations,
    children,
    sends: sends.map(({ to, event, onlyIfThere }) => ({ to, event, isOptional: onlyIfThere })),
    actions,
    final: final && readFinal(final),
  };
}

/** A delay that is no number is longer than any that is taken. */
function readTimer({ id, delayMs, event, to, onlyIfThere }: SetTimer): Timer {
  return { id, delayMs: countFrom(delayMs) ?? COUNT_MAX, event, to, isOptional: onlyIfThere };
}

function readFinal({ output, error, idleTtlMs }: FinalOnWire): Final {
  return {
    output,
    error,
    idleTtlMs: idleTtlMs === undefined ? undefined : (countFrom(idleTtlMs) ?? COUNT_MAX),
  };
}

/** The origin that `writeOrigin` has written, with what the wire of workers leaves out; undefined for an item that was submitted. */
export function readOrigin(
  wire: ItemOrigin | undefined,
  { number, isOptional }: { readonly number: number; readonly isOptional: boolean },
): Origin | undefined {
  const from = wire?.from;
  switch (from?.case) {
    case "mail":
      return { kind: "mail", from: from.value.key, isOptional };
    case "timer":
      return { kind: "timer", id: from.value.id, number };
    case "outcome":
    case "failure":
      return { kind: from.case, id: from.value.id, number, isChild: from.value.isChild };
    case "start":
      return { kind: "start", id: from.value.id, source: from.value.source, parent: from.value.parent };
    case "invocation":
      return { kind: "invocation", id: from.value.id, source: from.value.source, key: from.value.key };
    case "action":
      return { kind: "action", type: from.value.type, key: from.value.key };
    case undefined:
      return undefined;
  }
}

export function writeOrigin(origin: Origin): MessageInitShape<typeof ItemOriginSchema> {
  switch (origin.kind) {
    case "mail":
      return { from: { case: "mail", value: { key: origin.from } } };
    case "timer":
      return { from: { case: "timer", value: { id: origin.id } } };
    case "outcome":
    case "failure":
      return { from: { case: origin.kind, value: { id: origin.id, isChild: origin.isChild } } };
    case "start":
      return {
        from: { case: "start", value: { id: origin.id, source: origin.source, parent: origin.parent } },
      };
    case "invocation":
      return {
        from: { case: "invocation", value: { key: origin.key, id: origin.id, source: origin.source } },
      };
    case "action":
      return { from: { case: "action", value: { key: origin.key, type: origin.type } } };
  }
}
