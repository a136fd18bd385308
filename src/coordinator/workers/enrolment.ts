// The decision who may join, and who may not any more. A bundle lets in as many workers as its quota says, each of them once;
// nobody gets the id of a worker that lives but that worker itself; a bearer that was revoked gets and does nothing, for good.
//
// In the store: a row for each worker that a bundle has let in, so that its quota outlives a restart, and one record with the bearers
// whose certificates were revoked.
import { parseUlid } from "../../base/ids.ts";
import type { WorkerId } from "../../base/ids.ts";
import { LIMITS } from "../../config/limits.ts";
import { encodeRecord } from "../../storage/codec.ts";
import type { RecordType } from "../../storage/codec.ts";
import { ENROLLED_PREFIX, RECORD_KIND, REVOCATIONS_KEY } from "../../storage/keys.ts";
import { readRecord, recordsUnder } from "../../storage/records.ts";
import type { Entry, Store } from "../../storage/store.ts";
import type { BundleTimes, EnrolmentVerdict, Input, JoiningBundle } from "../turn/input.ts";
import { unreachable } from "../../base/assert.ts";
import type { CoordinatorState, EnrolmentState, KnownBundle } from "../turn/state.ts";
import { isHeard } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";

interface Enrolled extends BundleTimes {
  readonly enrolledAtWallMs: number;
}

export const enrolledRecord: RecordType<Enrolled> = {
  kind: RECORD_KIND.enrolled,
  name: "enrolled worker",
  encode: ({ enrolledAtWallMs, endsAtWallMs, warnFromWallMs }) => [
    enrolledAtWallMs,
    endsAtWallMs,
    warnFromWallMs,
  ],
  decode: (fields) => ({
    enrolledAtWallMs: fields.number(0),
    endsAtWallMs: fields.number(1),
    warnFromWallMs: fields.number(2),
  }),
};

/** Id of the bearer → when it was revoked, wall time. */
type Revoked = ReadonlyMap<string, number>;

export const revocationsRecord: RecordType<Revoked> = {
  kind: RECORD_KIND.revocations,
  name: "revocations",
  encode: (revoked) => [[...revoked].map(([id, atWallMs]) => [id, atWallMs])],
  decode: (fields) =>
    new Map(
      fields
        .tuples(0)
        .map((pair) => [parseUlid(pair.text(0)) ?? pair.refuse(0, "is no ULID"), pair.number(1)] as const),
    ),
};

/** @internal */
export function enrolledEntry(bundleId: string, workerId: WorkerId, enrolled: Enrolled): Entry {
  const key = `${ENROLLED_PREFIX}${bundleId}/${workerId}`;
  return { key, value: encodeRecord(enrolledRecord, key, enrolled) };
}

export function revocationsEntry(revoked: Revoked): Entry {
  return { key: REVOCATIONS_KEY, value: encodeRecord(revocationsRecord, REVOCATIONS_KEY, revoked) };
}

/** Throws store_corrupt or store_newer. */
export async function readRevoked(store: Store): Promise<Map<string, number>> {
  return new Map(await readRecord(store, REVOCATIONS_KEY, revocationsRecord));
}

const PAGE = 1_000;

/** Every worker that a bundle has let in: of one bundle, or of all. Throws store_corrupt or store_newer. */
export async function* readEnrolled(
  store: Store,
  bundleId?: string,
): AsyncGenerator<BundleTimes & { readonly bundleId: string; readonly workerId: WorkerId }, void, undefined> {
  const prefix = bundleId === undefined ? ENROLLED_PREFIX : `${ENROLLED_PREFIX}${bundleId}/`;
  for await (const { key, record: times } of recordsUnder(store, prefix, enrolledRecord, PAGE)) {
    const [bundle = "", worker = ""] = key.slice(ENROLLED_PREFIX.length).split("/");
    const workerId = parseUlid<WorkerId>(worker);
    // The checksum covers the key, so a record that was read stands under one that was written.
    if (workerId !== undefined) yield { bundleId: bundle, workerId, ...times };
  }
}

/** Adds these bearers, those that are there already left as they are. False when the list would be too long. */
export function addRevoked(revoked: Map<string, number>, ids: Iterable<string>, nowWallMs: number): boolean {
  const fresh = [...new Set(ids)].filter((id) => !revoked.has(id));
  if (revoked.size + fresh.length > LIMITS.revocations) return false;
  for (const id of fresh) revoked.set(id, nowWallMs);
  return true;
}

/** The share of its quota at which a bundle is warned of. */
const WARN_AT = 0.8;

/** Throws store_corrupt or store_newer. */
export async function replayEnrolment(store: Store, quota: number): Promise<EnrolmentState> {
  const bundles = new Map<string, KnownBundle>();
  for await (const { bundleId, workerId, ...times } of readEnrolled(store))
    note(bundles, { id: bundleId, ...times }).workers.add(workerId);
  return { quota, bundles, revoked: await readRevoked(store) };
}

export function onIdentity(
  state: CoordinatorState,
  turn: Turn,
  input: Extract<Input, { kind: "enrol" | "revoke" }>,
): void {
  switch (input.kind) {
    case "enrol":
      return turn.answer(input.answer, judge(state, turn, input.workerId, input.bundle));
    case "revoke":
      return onRevoke(state, turn, input);
    default:
      return unreachable(input, "input about an identity");
  }
}

function judge(
  state: CoordinatorState,
  turn: Turn,
  workerId: WorkerId,
  bundle: JoiningBundle | undefined,
): EnrolmentVerdict {
  const { revoked } = state.enrolment;
  if (revoked.has(workerId)) return { kind: "revoked", who: `worker ${workerId}` };
  // It shows its own certificate: it holds the key.
  if (bundle === undefined) return { kind: "granted" };
  if (revoked.has(bundle.id)) return { kind: "revoked", who: `enrolment ${bundle.id}` };
  const reason = state.fleets?.refusalOf(bundle, workerId);
  if (reason !== undefined) return { kind: "refused", reason };
  const row = state.workers.get(workerId);
  if (row !== undefined && isHeard(row)) return { kind: "alive" };
  const verdict = letIn(state, turn, workerId, bundle);
  if (verdict.kind === "granted") state.fleets?.noteRequest(turn, bundle);
  return verdict;
}

function letIn(
  { enrolment: { bundles, quota } }: CoordinatorState,
  turn: Turn,
  workerId: WorkerId,
  bundle: JoiningBundle,
): EnrolmentVerdict {
  const known = note(bundles, bundle);
  if (known.workers.has(workerId)) return { kind: "granted" };
  const isExhausted = known.workers.size >= quota;
  if (!isExhausted) {
    known.workers.add(workerId);
    const { endsAtWallMs, warnFromWallMs } = bundle;
    turn.put(
      enrolledEntry(bundle.id, workerId, { enrolledAtWallMs: turn.wallMs, endsAtWallMs, warnFromWallMs }),
    );
    turn.requireSync();
  }
  if (known.workers.size >= quota * WARN_AT && !known.warned.quota) {
    known.warned.quota = true;
    warn(turn, quota, bundle.id, known);
  }
  return isExhausted ? { kind: "exhausted", quota } : { kind: "granted" };
}

/** The bundle as it is known; a copy that was renewed counts. */
function note(
  bundles: Map<string, KnownBundle>,
  { id, endsAtWallMs, warnFromWallMs }: Omit<JoiningBundle, "request">,
): KnownBundle {
  const times = { endsAtWallMs, warnFromWallMs };
  const known = bundles.get(id);
  if (known === undefined) {
    const fresh = { workers: new Set<WorkerId>(), times, warned: { end: false, quota: false } };
    bundles.set(id, fresh);
    return fresh;
  }
  if (times.endsAtWallMs > known.times.endsAtWallMs) {
    known.times = times;
    known.warned.end = false;
  }
  return known;
}

/** Warns once of each bundle that will let nobody in before long. */
export function warnOfEnds({ enrolment: { bundles, quota, revoked } }: CoordinatorState, turn: Turn): void {
  for (const [id, known] of bundles) {
    const { warnFromWallMs, endsAtWallMs } = known.times;
    const isDue = warnFromWallMs <= turn.wallMs && turn.wallMs < endsAtWallMs;
    if (!isDue || known.warned.end || revoked.has(id)) continue;
    known.warned.end = true;
    warn(turn, quota, id, known);
  }
}

function warn(turn: Turn, quota: number, bundleId: string, { workers, times }: KnownBundle): void {
  const fields = {
    bundle_id: bundleId,
    enrolled: workers.size,
    quota,
    expires_in_ms: Math.max(0, Math.round(times.endsAtWallMs - turn.wallMs)),
  };
  const message =
    "an enrolment bundle lets nobody new in before long: make another with `rollout ca issue`, or raise enrolment.quota";
  turn.warn(message, fields);
  turn.emit("enrolment_ending", fields);
}

/** On disk before it is answered; sessions of the bearers end with the same turn. */
function onRevoke(
  { enrolment: { bundles, revoked }, workers }: CoordinatorState,
  turn: Turn,
  { id, withWorkers, answer }: Extract<Input, { kind: "revoke" }>,
): void {
  const enrolled = bundles.get(id)?.workers ?? new Set<WorkerId>();
  const alongside = withWorkers ? [...enrolled] : [];
  const ids = [id, ...alongside];
  if (!addRevoked(revoked, ids, turn.wallMs)) return turn.answer(answer, "full");
  turn.put(revocationsEntry(revoked));
  turn.requireSync();
  turn.effects.push({ kind: "revoked", ids });
  turn.emit("certificate_revoked", { bearer_id: id, workers: alongside.length });
  const isWorker = workers.has(id as WorkerId);
  turn.answer(answer, { isWorker, enrolled: enrolled.size, workersRevoked: alongside.length });
}

/** The default of `enrolment.quota`, for coordinators without a configuration. */
export const QUOTA_DEFAULT = LIMITS.enrolledPerBundle;
