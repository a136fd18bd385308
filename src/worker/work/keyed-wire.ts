// Keys on the wire, as a worker reads and writes them: the state that an attempt begins with and what made its item, the state that it leaves
// and what it asks for.
import { create } from "@bufbuild/protobuf";
import { unreachable } from "../../base/assert.ts";
import {
  FinalSchema,
  KeyedSchema,
  RunActionSchema,
  SendSchema,
  SetTimerSchema,
  StartChildSchema,
  StartInvocationSchema,
} from "../../gen/rollout/v1/work_pb.ts";
import type { Final, ItemOrigin, Keyed, KeyedAssignment } from "../../gen/rollout/v1/work_pb.ts";
import type { Outcome } from "../backends/backend.ts";
import { isWork } from "../backends/key-asks.ts";
import type { Ask, AskOf, KeyEnd, KeyOrigin } from "../backends/key-asks.ts";
import type { GivenState } from "./backlog.ts";

type Success = Extract<Outcome, { readonly kind: "success" }>;

export function readGiven({ key, commit, state, origin }: KeyedAssignment): GivenState {
  return { key, commit, state, origin: origin && readOrigin(origin) };
}

/** Undefined for one of a coordinator that knows more of them. */
function readOrigin({ from }: ItemOrigin): KeyOrigin | undefined {
  switch (from.case) {
    case "mail":
      return { kind: "mail", key: from.value.key };
    case "timer":
    case "outcome":
    case "failure":
      return { kind: from.case, id: from.value.id };
    case "start":
      return { kind: "start", source: from.value.source, parent: from.value.parent };
    case "invocation": {
      const { key, id, source } = from.value;
      return { kind: "invocation", key, id, source };
    }
    case "action":
      return { kind: "action", key: from.value.key, type: from.value.type };
    case undefined:
      return undefined;
    default:
      return unreachable(from, "origin");
  }
}

/** Undefined for an item that has no state: one without a key, and work that an actor has given. */
export function writeKeyed(
  given: GivenState | undefined,
  { state, asks = [], end }: Success,
  stateVersion: number,
): Keyed | undefined {
  if (given === undefined || isWork(given.origin)) return undefined;
  const keyed = create(KeyedSchema, { basedOn: given.commit, stateVersion });
  if (state === undefined) return keyed;
  if (state === "removed") return Object.assign(keyed, { removed: true });
  if (end !== undefined) keyed.final = writeEnd(end);
  keyed.state = state;
  return asks.length === 0 ? keyed : Object.assign(keyed, writeAsks(asks));
}

/** About as many bytes as it has on the wire. */
export function keyedBytes({ state, timers, invocations, children, sends, actions, final }: Keyed): number {
  const events = [...timers, ...sends].reduce((sum, { event }) => sum + event.length + ASK_BYTES, 0);
  const inputs = [...invocations, ...children].reduce((sum, { input }) => sum + input.length + ASK_BYTES, 0);
  const params = actions.reduce((sum, action) => sum + action.params.length + ASK_BYTES, 0);
  return (state?.length ?? 0) + events + inputs + params + (final?.output.length ?? 0);
}

type AskList = "stopped" | "cancelled" | "timers" | "invocations" | "children" | "sends" | "actions";

/** A key and an id. */
const ASK_BYTES = 64;

function writeAsks(asks: readonly Ask[]): Pick<Keyed, AskList> {
  const of = <Kind extends Ask["kind"]>(kind: Kind): AskOf<Kind>[] =>
    asks.filter((ask): ask is AskOf<Kind> => ask.kind === kind);
  return {
    stopped: of("stop").map(({ id }) => id),
    cancelled: of("cancel").map(({ id }) => id),
    timers: of("timer").map(({ id, delayMs, event, to = "", onlyIfThere }) =>
      create(SetTimerSchema, { id, delayMs: BigInt(delayMs), event: Buffer.from(event), to, onlyIfThere }),
    ),
    invocations: of("invocation").map(({ id, source, input }) =>
      create(StartInvocationSchema, { id, source, input: Buffer.from(input) }),
    ),
    children: of("child").map(({ id, source, input }) =>
      create(StartChildSchema, { id, source, input: Buffer.from(input) }),
    ),
    sends: of("send").map(({ to, event, onlyIfThere }) =>
      create(SendSchema, { to, event: Buffer.from(event), onlyIfThere }),
    ),
    actions: of("action").map(({ type, params }) =>
      create(RunActionSchema, { type, params: Buffer.from(params) }),
    ),
  };
}

function writeEnd({ output, error, idleTtlMs }: KeyEnd): Final {
  return create(FinalSchema, {
    output: Buffer.from(output),
    ...(error !== undefined && { error }),
    ...(idleTtlMs !== undefined && { idleTtlMs: BigInt(idleTtlMs) }),
  });
}
