// The frame of a smoke: it has its time, says what happens as it happens, leaves nothing behind, and ends with `smoke ok: …`, or loudly.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { sleep, systemClock } from "../../src/base/clock.ts";

export type Tell = (sentence: string) => void;

export interface Stage {
  readonly tell: Tell;
  /** Called when the smoke is over, however it ended, what was said last first. Say it before there is anything to clean up. */
  afterwards(end: () => Promise<void>): void;
  /** Shown when the smoke fails. */
  explainBy(lastWords: () => string): void;
}

type Figures = Readonly<Record<string, string | number>>;

/** How long a smoke may take: what the user says, or as usual. */
export function limitMsOr(usualMin: number): number {
  return Number(process.env["ROLLOUT_SMOKE_MINUTES"] ?? usualMin) * 60_000;
}

/** Smokes of this machine run what was built. */
export function demandBuild(): void {
  if (!existsSync(fileURLToPath(new URL("../../dist/src/cli/main.js", import.meta.url))))
    throw new Error("nothing is built: run `make build` first");
}

export function demand(isSo: boolean, otherwise: string): void {
  if (!isSo) throw new Error(otherwise);
}

/** The exit code. The figures of the play are in the last line, and the seconds that it took. */
export async function runSmoke(limitMs: number, play: (stage: Stage) => Promise<Figures>): Promise<number> {
  const startedMs = systemClock.monotonicMs();
  const seconds = (): string => ((systemClock.monotonicMs() - startedMs) / 1_000).toFixed(1);
  const ends: (() => Promise<void>)[] = [];
  const explanations: (() => string)[] = [];
  const enough = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => enough.abort());
  const stage: Stage = {
    tell: (sentence) => enough.signal.aborted || console.log(`${seconds().padStart(6)} s  ${sentence}`),
    afterwards: (end) => void ends.unshift(end),
    explainBy: (lastWords) => void explanations.push(lastWords),
  };
  let figures: Figures | undefined;
  try {
    figures = await Promise.race([play(stage), limited(limitMs, enough.signal)]);
  } catch (error) {
    for (const lastWords of explanations) console.error(lastWords());
    const why = error instanceof Error ? error.message : String(error);
    console.error(`smoke failed after ${seconds()} s: ${why}`);
  } finally {
    enough.abort();
    for (const end of ends) await end().catch((error: unknown) => console.error(String(error)));
  }
  if (figures === undefined) return 1;
  const shown = Object.entries({ ...figures, seconds: seconds() }).map(([name, value]) => `${name}=${value}`);
  console.log(`smoke ok: ${shown.join(" ")}`);
  return 0;
}

/** Rejects when the time is over, or somebody has had enough. */
function limited(limitMs: number, enough: AbortSignal): Promise<never> {
  const over = sleep(systemClock, limitMs, enough).then((): never => {
    throw new Error(enough.aborted ? "interrupted" : `it took longer than ${limitMs / 1_000} s`);
  });
  // It is of interest only while somebody waits.
  over.catch(() => undefined);
  return over;
}
