// A queue that is measured: opened for one run, with a process that produces items and others that work, and measured over that run.
import { systemClock } from "../../../src/base/clock.ts";
import { round } from "../figure.ts";
import { idleShare, machineTime, usageOf, usageSince } from "./process-usage.ts";
import type { ProcessUsage } from "./process-usage.ts";

export interface Contender {
  readonly name: string;
  /** Everything is begun for `use`, and ended behind it. */
  stage(items: number, use: (scene: Scene) => Promise<Measured>): Promise<Measured>;
}

export interface Scene {
  /** The servers' processes, by name. */
  readonly servers: ReadonlyMap<string, number>;
  /** It is ready to produce. */
  readonly producer: number;
  /** Resolves when every item is on its server's disk, as far as that server promises it. */
  produce(): Promise<void>;
  /** Resolves with their pids when they are ready. */
  startWorkers(count: number): Promise<readonly number[]>;
  /** Resolves with the monotonic time at which so many results were recorded. */
  untilDone(count: number): Promise<number>;
  /** Results that are kept, counted where they are kept. */
  countResults(): Promise<number>;
}

/** First everything is produced, then it is worked off; or both at once. */
export type Mode = "phased" | "overlapped";

export interface Measured {
  readonly contender: string;
  readonly mode: Mode;
  readonly workers: number;
  /** From the first item produced to the last result; phased, the start of the workers is left out. */
  readonly itemsPerSecond: number;
  readonly producedPerSecond: number;
  /** The share of all cores that did nothing. */
  readonly idleShare: number;
  readonly processes: Readonly<Record<string, ProcessUsage>>;
}

interface Shape {
  readonly mode: Mode;
  readonly workers: number;
  readonly items: number;
}

export function measure(contender: Contender, shape: Shape): Promise<Measured> {
  return contender.stage(shape.items, (scene) => perform(contender.name, scene, shape));
}

async function perform(contender: string, scene: Scene, { mode, workers, items }: Shape): Promise<Measured> {
  const pids = new Map([...scene.servers, ["producer", scene.producer]]);
  const hire = async (): Promise<void> => {
    for (const [at, pid] of (await scene.startWorkers(workers)).entries()) pids.set(`worker ${at + 1}`, pid);
  };
  if (mode === "overlapped") await hire();
  const before = new Map([...pids].map(([who, pid]) => [who, usageOf(pid)]));
  const [machineBefore, fromMs] = [machineTime(), systemClock.monotonicMs()];
  await scene.produce();
  const producedMs = systemClock.monotonicMs() - fromMs;
  if (mode === "phased") await hire();
  const firstMs = await scene.untilDone(1);
  const lastMs = await scene.untilDone(items);
  const machine = idleShare(machineBefore, machineTime());
  const processes = [...pids].map(([who, pid]) => [who, usageSince(before.get(who), usageOf(pid))] as const);
  const results = await scene.countResults();
  if (results !== items) throw new Error(`${contender} keeps ${results} results of ${items} items`);
  const tookMs = mode === "phased" ? producedMs + lastMs - firstMs : lastMs - fromMs;
  const perSecond = (ms: number): number => round((items / ms) * 1_000);
  return {
    ...{ contender, mode, workers, idleShare: round(machine, 2), processes: Object.fromEntries(processes) },
    ...{ itemsPerSecond: perSecond(tookMs), producedPerSecond: perSecond(producedMs) },
  };
}
