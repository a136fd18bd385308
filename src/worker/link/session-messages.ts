// The attempts in a session's frames, read and written. A message of a coordinator that does not make sense is refused
// whole: nothing of it is acted on.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Attempt, CoordinatorEnvelope } from "../../gen/rollout/v1/common_pb.ts";
import { HeldPhase } from "../../gen/rollout/v1/work_pb.ts";
import type {
  Assignment,
  AssignmentBatch,
  HelloSchema,
  HandBackSchema,
} from "../../gen/rollout/v1/work_pb.ts";
import { attemptKey } from "../work/backlog.ts";
import type { Assigned, Executed } from "../work/backlog.ts";
import { readGiven } from "../work/keyed-wire.ts";

const ITEM_ID_BYTES = 32;
/** This process's own incarnation is in the envelope. */
const OWN = new Uint8Array();

/** Whether `attempt` can name one. */
export function isAttempt(attempt: Attempt | undefined): attempt is Attempt {
  return attempt?.itemId.length === ITEM_ID_BYTES && attempt.attempt > 0;
}

export type NewAssignments =
  | { readonly kind: "read"; readonly fresh: readonly Assigned[]; readonly lastNumber: number }
  | { readonly kind: "refused"; readonly reason: string };

/** The assignments not received before: with numbers over `received`, which the batch must follow without a gap. */
export function readAssignments(batch: AssignmentBatch, epoch: bigint, received: number): NewAssignments {
  const { firstNumber, assignments } = batch;
  if (firstNumber < 1n || firstNumber > BigInt(received) + 1n)
    return { kind: "refused", reason: `assignment ${firstNumber} does not follow ${received}` };
  const known = received + 1 - Number(firstNumber);
  const fresh: Assigned[] = [];
  for (let at = known; at < assignments.length; at++) {
    const assigned = readAssignment(assignments[at], epoch, batch);
    if (assigned === undefined) return { kind: "refused", reason: "an assignment names no attempt" };
    fresh.push(assigned);
  }
  return { kind: "read", fresh, lastNumber: received + fresh.length };
}

function readAssignment(
  assignment: Assignment | undefined,
  epoch: bigint,
  { plugin, itemTimeoutMs, pointers }: AssignmentBatch,
): Assigned | undefined {
  if (assignment === undefined || !isAttempt(assignment.attempt)) return undefined;
  const { itemId, attempt } = assignment.attempt;
  const { payload, checkpoint, priority, alone, keyed, pluginVersion: version } = assignment;
  const key = attemptKey(itemId, attempt, epoch);
  const what = { payload, checkpoint, priority, alone, keyed: keyed && readGiven(keyed) };
  const how = { plugin, version, timeoutMs: Number(itemTimeoutMs) };
  return { key, itemId, attempt, epoch, ...what, ...how, ...(pointers.length > 0 && { pointers }) };
}

export interface Holdings {
  readonly unstarted: Iterable<Assigned>;
  readonly running: Iterable<Assigned>;
  readonly finished: Iterable<Executed>;
}

export interface StatedHoldings {
  readonly message: MessageInitShape<typeof HelloSchema>;
  /** In the order of the message, which is that of the verdicts. */
  readonly keys: readonly string[];
}

export function writeHello({ unstarted, running, finished }: Holdings): StatedHoldings {
  const stated: [HeldPhase, Executed][] = [];
  for (const assigned of finished) stated.push([HeldPhase.FINISHED, assigned]);
  for (const assigned of running) stated.push([HeldPhase.RUNNING, assigned]);
  for (const assigned of unstarted) stated.push([HeldPhase.UNSTARTED, assigned]);
  const held = stated.map(([phase, { itemId, attempt, epoch, incarnation = OWN, version }]) => ({
    attempt: { itemId, attempt },
    phase,
    epoch,
    incarnation,
    pluginVersion: version,
  }));
  return { message: { held }, keys: stated.map(([, { key }]) => key) };
}

export function writeHandBack(unstarted: readonly Assigned[]): MessageInitShape<typeof HandBackSchema> {
  return { handedBack: unstarted.map(({ itemId, attempt }) => ({ itemId, attempt })) };
}

/** The keys of what is `asked` for among what is held. A recall names no epoch; of one name at most one is unstarted. */
export function keysOf(asked: readonly Attempt[], held: Iterable<Assigned>): string[] {
  const name = (itemId: Uint8Array, attempt: number): string => attemptKey(itemId, attempt, 0n);
  const byName = new Map<string, string>();
  for (const { key, itemId, attempt } of held) byName.set(name(itemId, attempt), key);
  return asked.flatMap(({ itemId, attempt }) => byName.get(name(itemId, attempt)) ?? []);
}

/** The leadership whose words these are: another one may be of a database that was restored. */
export function leaderOf(coordinator: CoordinatorEnvelope | undefined): string {
  return `${Buffer.from(coordinator?.storeId ?? []).toString("hex")}@${coordinator?.coordEpoch ?? 0n}`;
}

/** Undefined when the state is left out that its key has. */
export function ifWhole(assigned: Assigned): Assigned | undefined {
  const { keyed } = assigned;
  return keyed === undefined || keyed.commit === 0n || keyed.state !== undefined ? assigned : undefined;
}
