// The settings of one seed: the size of the cluster, its work, the weather, and the kinds of trouble that it meets. Each run gets
// a random part of them (swarm testing): a fault that is always there hides what only happens without it.
import { seededRandom } from "../../src/base/random.ts";
import type { Random } from "../../src/base/random.ts";
import type { DatabaseWeather } from "./database-way.ts";
import type { FleetMix } from "./fleet-settings.ts";
import type { NetworkWeather } from "./network.ts";
import type { DiskWeather } from "./process-store.ts";
import { drawRelease } from "./release-settings.ts";
import type { ReleaseSettings } from "./release-settings.ts";
import type { DrawnWork } from "./workload.ts";
import { between, happens } from "./world.ts";

export const FAULTS = [
  "coordinator-kill",
  "coordinator-power",
  "coordinator-stop",
  "coordinator-restart",
  "successor",
  "worker-kill",
  "worker-power",
  "worker-stop",
  "preemption",
  "rebalance",
  "partition",
  "wall-clock",
] as const;
/** Troubles of coordinators that share a database. */
export const SHARED_FAULTS = [
  "step-down",
  "coordinator-partition",
  "database-cut",
  "database-restart",
  "database-promotion",
  "database-older",
  "standby-away",
] as const;
export type Fault = (typeof FAULTS)[number] | (typeof SHARED_FAULTS)[number];

/** An operator's doings beside submitting, sealing and looking. */
export interface Steering {
  readonly pauses: boolean;
  /** Takes failed items back, while the run goes on and when it is complete. */
  readonly retries: boolean;
  readonly cancels: boolean;
}

export interface Settings extends DrawnWork {
  /** One has its ledger on a disk of its own; several share a database. */
  readonly coordinators: number;
  readonly workers: number;
  /** Whether a coordinator that shares a database stands only while it sees most of them. */
  readonly quorum: "off" | "majority";
  /** Beside them, workers that only make calls. */
  readonly callers: number;
  readonly slots: number;
  readonly prefetch: number;
  readonly inboxMax: number;
  /** Whether keys are actors: their items ask for others, for timers and for children. */
  readonly hasActors: boolean;
  /** The chance that an item waits for a model that loads before it begins. */
  readonly loadingChance: number;
  /** Whether keys go on behind what has failed, without being asked. */
  readonly skipsFailed: boolean;
  /** Whether workers keep checkpoints of their partitions. */
  readonly hasCheckpoints: boolean;
  readonly faults: readonly Fault[];
  /** How long faults happen; then everything heals. */
  readonly stormMs: number;
  /** The mean time between two of them. */
  readonly faultEveryMs: number;
  readonly clockRates: boolean;
  readonly network: NetworkWeather;
  readonly disk: DiskWeather;
  readonly database: DatabaseWeather;
  readonly steering: Steering;
  /** Undefined: the run has none, and names no plugin. */
  readonly release: ReleaseSettings | undefined;
  /** Undefined: nobody starts workers. No seed draws one: a run has it that is asked for it. */
  readonly fleet: FleetMix | undefined;
}

export const CALM_NETWORK: NetworkWeather = {
  delayMaxMs: 2,
  slowChance: 0,
  breakChance: 0,
  lossChance: 0,
  duplicateChance: 0,
};
export const CALM_DISK: DiskWeather = { syncMaxMs: 3, slowChance: 0, unknownChance: 0 };
export const CALM_DATABASE: DatabaseWeather = {
  syncMaxMs: 3,
  delayMaxMs: 1,
  slowChance: 0,
  breakChance: 0,
  awayMaxMs: 6_000,
  copyLacks: [0, 40],
};
export const COORDINATORS = 3;

/** `coordinators`: one or several; as chance has it unless said. */
export function drawSettings(random: Random, coordinators?: number): Settings {
  const settings = drawCluster(random);
  // Drawn last, so that the rest is the same with one coordinator and with several.
  const [drawn, shared] = [happens(random, 0.5) ? COORDINATORS : 1, drawShared(random)];
  const count = coordinators ?? drawn;
  if (count === 1) return settings;
  return { ...settings, ...shared, coordinators: count, faults: [...settings.faults, ...shared.faults] };
}

function drawShared(random: Random): Pick<Settings, "faults" | "database" | "quorum"> {
  return {
    quorum: happens(random, 0.3) ? "majority" : "off",
    faults: SHARED_FAULTS.filter(() => happens(random, 0.3)),
    database: {
      ...CALM_DATABASE,
      syncMaxMs: happens(random, 0.2) ? 40 : 3,
      delayMaxMs: happens(random, 0.2) ? 40 : 1,
      slowChance: happens(random, 0.2) ? 0.01 : 0,
      breakChance: happens(random, 0.3) ? 0.005 : 0,
    },
  };
}

function drawCluster(random: Random): Settings {
  const maybe = (chance: number, value: () => number): number => (happens(random, chance) ? value() : 0);
  return {
    coordinators: 1,
    fleet: undefined,
    quorum: "off",
    database: CALM_DATABASE,
    items: Math.floor(between(random, 10, 60)),
    workers: 3,
    slots: 1 + Math.floor(random.unit() * 3),
    prefetch: 1 + Math.floor(random.unit() * 8),
    inboxMax: happens(random, 0.15) ? 6 : 1_000,
    loadingChance: 0.05,
    unkeyedEvery: 4,
    kinds: {
      flaky: maybe(0.4, () => 0.1),
      bad: maybe(0.3, () => 0.05),
      big: maybe(0.2, () => 0.05),
      slow: maybe(0.5, () => between(random, 0.02, 0.2)),
      deadly: maybe(0.2, () => 0.04),
      toxic: maybe(0.2, () => 0.05),
    },
    faults: FAULTS.filter(() => happens(random, 0.3)),
    stormMs: between(random, 1_000, 12_000),
    faultEveryMs: between(random, 300, 3_000),
    clockRates: happens(random, 0.2),
    network: {
      delayMaxMs: happens(random, 0.3) ? 60 : 3,
      slowChance: maybe(0.3, () => 0.02),
      breakChance: maybe(0.3, () => between(random, 0.001, 0.02)),
      lossChance: maybe(0.4, () => 0.2),
      duplicateChance: maybe(0.4, () => 0.3),
    },
    disk: {
      syncMaxMs: happens(random, 0.2) ? 40 : 3,
      slowChance: maybe(0.2, () => 0.01),
      unknownChance: maybe(0.15, () => 0.003),
    },
    ...drawRest(random),
  };
}

/** A release with ten items decides nothing. */
const ITEMS_WITH_RELEASE = 60;

/** The settings, with enough items for the release that the run has. */
export function withItemsFor({ release, items, ...rest }: Settings): Settings {
  return { ...rest, release, items: release === undefined ? items : Math.max(items, ITEMS_WITH_RELEASE) };
}

function drawRest(
  random: Random,
): Pick<
  Settings,
  "steering" | "callers" | "keys" | "hasActors" | "skipsFailed" | "hasCheckpoints" | "release"
> {
  const [pauses, retries, drawn] = [happens(random, 0.3), happens(random, 0.3), random.unit()];
  // Further digits of the same draw, so that later draws are the same as without callers.
  const callers = (1_000 * drawn) % 1 < 0.4 ? 1 : 0;
  const [hasKeys, howMany] = [(1_000_000 * drawn) % 1 < 0.3, (10_000 * drawn) % 1];
  const keys = hasKeys ? 1 + Math.floor(howMany * 8) : 0;
  const skipsFailed = (100_000 * drawn) % 1 < 0.3;
  const hasCheckpoints = keys > 0 && (10_000_000 * drawn) % 1 < 0.7;
  const hasRelease = (100_000_000 * drawn) % 1 < 0.3;
  const release = hasRelease ? drawRelease(seededRandom(Math.floor(drawn * 2 ** 32))) : undefined;
  // No release tries items that have keys.
  const hasActors = keys > 0 && !hasRelease && (1_000_000_000 * drawn) % 1 < 0.7;
  const steering = { pauses, retries, cancels: drawn < 0.1 };
  return { steering, callers, keys, hasActors, skipsFailed, hasCheckpoints, release };
}
