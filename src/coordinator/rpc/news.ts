// Calls that wait for news of the run: for other numbers, or a step of it or of a worker. Keeps true: what has happened since the answer
// that the caller has is not waited for; an answer of another leadership is old, whatever it says.
import type { Clock } from "../../base/clock.ts";
import type { GetRunRequest } from "../../gen/rollout/v1/run_pb.ts";
import type { RunReach } from "../turn/run-terms.ts";
import type { Leader } from "./leader.ts";
import { refuse } from "./leader.ts";

const WAIT_MAX_MS = 20_000;
const MARK = /^n(\d{1,15})\.(\d{1,15})\.(\d{1,15})$/;

/** Resolves when there is news, or none to be waited for any longer: at once where too many wait. Throws request_invalid. */
export async function untilNews(
  { reach, envelope, stopping }: Pick<Leader, "reach" | "envelope" | "stopping">,
  clock: Clock,
  { after, waitMs, collectMs }: Pick<GetRunRequest, "after" | "waitMs" | "collectMs">,
  signal: AbortSignal,
): Promise<void> {
  if (after === "") return;
  const mark = MARK.exec(after) ?? refuse("GetRun", "after is not what an answer has said");
  const [epoch, steps = 0, changes = 0] = mark.slice(1).map(Number);
  if (epoch !== Number(envelope.coordEpoch)) return;
  const endMs = clock.monotonicMs() + Math.min(waitMs, WAIT_MAX_MS);
  const gone = AbortSignal.any([signal, stopping]);
  const until = (isEnough: (now: RunReach) => boolean, atMostMs: number): Promise<boolean> => {
    const leftMs = endMs - clock.monotonicMs();
    return reach.until(isEnough, { clock, waitMs: Math.min(leftMs, atMostMs), signal: gone });
  };
  if (await until((now) => now.steps > steps, collectMs)) return;
  await until((now) => now.steps > steps || now.changes > changes, WAIT_MAX_MS);
}
