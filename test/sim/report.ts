// A verdict in words: what went wrong, the last of what happened, and the one command that shows it again.
import type { Verdict } from "./simulation.ts";

/** Enough to see what led to it; the command gives all of it. */
const TAIL_LINES = 60;

function replayCommand(seed: number): string {
  return `npm run simulate -- --seed ${seed} --seeds 1`;
}

/** The report of a verdict that found a violation. */
export function reportOf({ seed, violation, tail, settings }: Verdict, lines = TAIL_LINES): string {
  return [
    ...tail.slice(-lines),
    `settings: ${JSON.stringify(settings)}`,
    `seed ${seed}: ${violation?.message ?? "nothing was violated"}`,
    `again: ${replayCommand(seed)}`,
  ].join("\n");
}
