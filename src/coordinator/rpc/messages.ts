// Between the wire and the coordinator's own words, both ways. Messages of peers are checked here, field by field and against
// their limits; behind this file nothing doubts a message any more.
import { create } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { failure } from "../../base/errors.ts";
import { LIMITS } from "../../config/limits.ts";
import type { Epoch, IncarnationId, StoreId, WorkerId } from "../../base/ids.ts";
import { parseUlidBytes, ulidToBytes } from "../../base/ids.ts";
import { CoordinatorEnvelopeSchema, WorkerState } from "../../gen/rollout/v1/common_pb.ts";
import type { CoordinatorEnvelope } from "../../gen/rollout/v1/common_pb.ts";
import { BeatVerdict as WireVerdict } from "../../gen/rollout/v1/heartbeat_pb.ts";
import type { BeatAckSchema, Beat as WireBeat } from "../../gen/rollout/v1/heartbeat_pb.ts";
import type { Beat, BeatAnswer, BeatVerdict, ClaimedState } from "../turn/input.ts";

const { slotsPerWorker: SLOTS_MAX, pluginsPerBeat: PLUGINS_MAX, pluginTextBytes: PLUGIN_TEXT_MAX } = LIMITS;
const { troubleBytes: TROUBLE_MAX } = LIMITS;
/** SHA-256. */
const DIGEST_BYTES = 32;
/** A path of a chart and a word. */
const DRAIN_TEXT_MAX = 128;

const CLAIMED: { readonly [State in WorkerState]: ClaimedState | undefined } = {
  [WorkerState.UNSPECIFIED]: undefined,
  [WorkerState.INIT]: "Init",
  [WorkerState.READY]: "Ready",
  [WorkerState.DRAINING]: "Draining",
  [WorkerState.GONE]: "Gone",
};

const WIRE_VERDICT: { readonly [Verdict in Exclude<BeatVerdict, "refused" | "ahead">]: WireVerdict } = {
  accepted: WireVerdict.ACCEPTED,
  superseded: WireVerdict.SUPERSEDED,
  drain: WireVerdict.DRAIN,
};

/** Throws request_invalid, naming the field. */
export function readBeat(wire: WireBeat | undefined): Beat {
  const refuse = (reason: string): never => {
    throw failure("request_invalid", { method: "a heartbeat", reason });
  };
  const workerId = parseUlidBytes<WorkerId>(wire?.worker?.workerId ?? new Uint8Array());
  const incarnation = parseUlidBytes<IncarnationId>(wire?.worker?.incarnation ?? new Uint8Array());
  if (wire === undefined || workerId === undefined) return refuse("worker_id is not 16 bytes");
  if (incarnation === undefined) return refuse("incarnation is not 16 bytes");
  const state = CLAIMED[wire.state];
  if (state === undefined) return refuse("state is not one of a worker's");
  const count = (value: bigint, field: string): number =>
    countFrom(value) ?? refuse(`${field} is over ${COUNT_MAX}`);
  const sequence = count(wire.sequence, "sequence");
  if (sequence < 1) return refuse("sequence is not counted from 1");
  const acked =
    wire.ackedAssignment === undefined ? undefined : count(wire.ackedAssignment, "acked_assignment");
  if (wire.worker?.epochSeen !== undefined) count(wire.worker.epochSeen, "epoch_seen");
  if (!(wire.load >= 0 && wire.load <= 1)) return refuse("load is not between 0 and 1");
  if (wire.slots > SLOTS_MAX) return refuse(`slots is over ${SLOTS_MAX}`);
  if (wire.plugins.length > PLUGINS_MAX) return refuse(`more than ${PLUGINS_MAX} plugins`);
  for (const { name, version } of wire.plugins)
    if (Buffer.byteLength(name) > PLUGIN_TEXT_MAX || Buffer.byteLength(version) > PLUGIN_TEXT_MAX)
      return refuse(`a plugin's name or version is longer than ${PLUGIN_TEXT_MAX} bytes`);
  const { taskDigests } = wire;
  if (taskDigests.length > 0 && taskDigests.length !== wire.plugins.length)
    return refuse("task_digests are not as many as plugins");
  if (taskDigests.some(({ length }) => length !== DIGEST_BYTES))
    return refuse(`a task's digest is not ${DIGEST_BYTES} bytes`);
  if (Buffer.byteLength(wire.trouble) > TROUBLE_MAX)
    return refuse(`trouble is longer than ${TROUBLE_MAX} bytes`);
  const { drain } = wire;
  if (drain !== undefined && Buffer.byteLength(drain.state + drain.cause) > DRAIN_TEXT_MAX)
    return refuse(`drain says more than ${DRAIN_TEXT_MAX} bytes`);
  return {
    workerId,
    incarnation,
    sequence,
    state,
    load: wire.load,
    sentAtMs: count(wire.sentAtMs, "sent_at_ms"),
    slots: wire.slots,
    plugins: wire.plugins.map(({ name, version, stateVersion }, at) => ({
      ...{ name, version },
      ...(stateVersion > 0 && { stateVersion }),
      ...(taskDigests[at] && { taskDigest: new Uint8Array(taskDigests[at]) }),
    })),
    ...(wire.loadedVersions > 0 && { loadedVersions: wire.loadedVersions }),
    isAtRisk: wire.atRisk,
    trouble: wire.trouble,
    ...(drain && { drain: { state: drain.state, cause: drain.cause, leftMs: drain.leftMs } }),
    holdsNothing: wire.heldDigest?.length === 0,
    takesKeys: wire.takesKeys,
    ...(acked !== undefined && { ackedAssignment: acked }),
  };
}

/** The envelope that every message of this leader carries. Made once per leadership. */
export function envelopeOf(epoch: Epoch, storeId: StoreId): CoordinatorEnvelope {
  return create(CoordinatorEnvelopeSchema, { coordEpoch: BigInt(epoch), storeId: ulidToBytes(storeId) });
}

/** Throws overloaded when the registry is full, and clock_ahead for a process that begins in the future. */
export function writeBeatAck(
  coordinator: CoordinatorEnvelope,
  { sequence, verdict, assignmentEpoch }: BeatAnswer,
  workersMax: number,
): MessageInitShape<typeof BeatAckSchema> {
  if (verdict === "ahead") throw failure("clock_ahead", {});
  if (verdict === "refused")
    throw failure("overloaded", { what: "the registry of workers", limit: workersMax });
  const epoch = assignmentEpoch === undefined ? {} : { assignmentEpoch: BigInt(assignmentEpoch) };
  return { coordinator, sequence: BigInt(sequence), verdict: WIRE_VERDICT[verdict], ...epoch };
}

// Numbers that peers send in 64 bits, and that this program counts on from, compares and stores as its own, stay exact however long
// the coordinator counts on from them: one that no record could hold would leave a row behind that no leader can read.

/** Far below the last number that is exact, and far above what anybody counts to. */
export const COUNT_MAX = 2 ** 52;

/** The number; undefined when it is over `COUNT_MAX`, or as far below 0. */
export function countFrom(wire: bigint): number | undefined {
  const count = Number(wire);
  return Math.abs(count) <= COUNT_MAX ? count : undefined;
}
