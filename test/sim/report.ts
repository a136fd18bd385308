// A verdict in words: what went wrong, the last of what happened, and the one command that shows it again.
import type { Verdict } from "./simulation.ts";

/** Enough to see what led to it; the command gives all of it. */
const TAIL_LINES = 60;

function replayCommand(seed: number, coordinators: number | undefined, hasFleet: boolean): string {
  const option = coordinators === undefined ? "" : ` --coordinators ${coordinators}`;
  return `npm run simulate -- --seed ${seed} --seeds 1${option}${hasFleet ? " --fleet" : ""}`;
}

/** The report of a verdict that found a violation. `coordinators`: as it was asked for. */
export function reportOf(
  { seed, violation, tail, settings }: Verdict,
  coordinators?: number,
  lines = TAIL_LINES,
): string {
  return [
    ...tail.slice(-lines),
    `settings: ${JSON.stringify(settings)}`,
    `seed ${seed}: ${violation?.message ?? "nothing was violated"}`,
    `again: ${replayCommand(seed, coordinators, settings.fleet !== undefined)}`,
  ].join("\n");
}

/**
 * In the tests of this suite errors have no stacks: thousands are made for refusals that are part of the game, and their stacks are a tenth of
 * the work. The command in a report shows them.
 */
export function withoutStacks(): void {
  let limit: number;
  before(() => {
    limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
  });
  after(() => {
    Error.stackTraceLimit = limit;
  });
}
