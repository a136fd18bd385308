// The coordinators of a run, as they say of themselves, and the leader's leave to make room for another.
import type { Client } from "@connectrpc/connect";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { RolloutError } from "../base/errors.ts";
import type { Coordinator, CoordinatorService } from "../gen/rollout/v1/coordinator_pb.ts";
import { CoordinatorSchema } from "../gen/rollout/v1/coordinator_pb.ts";
import { plainOf } from "./operator-message.ts";
import type { Plain } from "./operator-message.ts";

export interface CoordinatorSummary extends Plain<Coordinator> {
  readonly role: "following" | "claiming" | "leader" | "fenced" | "halted" | "unknown";
}

type Calls = Client<typeof CoordinatorService>;

/** By address. None of a coordinator that is older than this program. Throws the transport's rows. */
export async function listCoordinators(calls: Calls): Promise<CoordinatorSummary[]> {
  try {
    const { coordinators } = await calls.describe({});
    return coordinators.map((each) => plainOf(CoordinatorSchema, each) as CoordinatorSummary);
  } catch (error) {
    if (error instanceof RolloutError && error.code === "request_invalid") return [];
    throw error;
  }
}

export interface Handover {
  /** The one that led; undefined when none did. */
  readonly from: CoordinatorSummary | undefined;
  /** The one that leads now; undefined when none has come to lead in time. */
  readonly to: CoordinatorSummary | undefined;
  /** From when it was asked to when another one led. */
  readonly tookMs: number;
}

const POLL_MS = 50;
/** A coordinator that follows takes over at once, or when the lease has been quiet. */
const PATIENCE_MS = 30_000;

/**
 * Has the leader make room, and waits for the next. Throws no_successor when no other coordinator is there, and the transport's
 * rows. A leader that was followed meanwhile stays.
 */
export async function handOver(calls: Calls, clock: Clock): Promise<Handover> {
  const beganMs = clock.monotonicMs();
  const from = leaderIn(await listCoordinators(calls));
  const epoch = from?.epoch ?? -1;
  await calls.stepDown({ epoch });
  for (;;) {
    const leader = leaderIn(await listCoordinators(calls).catch(() => []));
    const tookMs = clock.monotonicMs() - beganMs;
    if (leader !== undefined && (leader.epoch ?? -1) > epoch) return { from, to: leader, tookMs };
    if (tookMs >= PATIENCE_MS) return { from, to: undefined, tookMs };
    await sleep(clock, POLL_MS);
  }
}

/** The one with the highest epoch, of several that say so. */
export function leaderIn(coordinators: readonly CoordinatorSummary[]): CoordinatorSummary | undefined {
  const leaders = coordinators.filter(({ role, present }) => role === "leader" && present);
  return leaders.toSorted((one, other) => (other.epoch ?? -1) - (one.epoch ?? -1))[0];
}
