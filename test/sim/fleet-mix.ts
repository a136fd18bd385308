// Runs with a fleet. It is drawn from a stream of its own, so that a seed without one is what it was.
import { seededRandom } from "../../src/base/random.ts";
import type { FleetMix } from "./fleet-settings.ts";
import type { Fault, Settings } from "./settings.ts";
import type { Variant } from "./variant.ts";
import { between, happens } from "./world.ts";

const HOURS_PER_MINUTE = 1 / 60;
/** Kills of the coordinator are what a fleet is about. */
const ALWAYS: readonly Fault[] = ["coordinator-kill"];
/** Enough, and slow enough, for machines that come late; and time enough for trouble to meet them. */
const WORK = { items: 80, slow: 0.3, storms: 2.5 };

function drawFleet(drawn: Settings): FleetMix {
  const random = seededRandom(Math.floor(drawn.stormMs * 1e6) % 2 ** 32);
  const maybe = (chance: number, value: number): number => (happens(random, chance) ? value : 0);
  const minutes = happens(random, 0.4) ? between(random, 11, 30) : undefined;
  return {
    settings: {
      ...{ name: "spot", slots: drawn.slots, min: maybe(0.2, 1), max: 2 + Math.floor(random.unit() * 3) },
      ...{ pollIntervalMs: 1_000, startTimeoutMs: 20_000, idleTimeoutMs: 2_000, orphanTimeoutMs: 60_000 },
      queueTimeoutMs: happens(random, 0.2) ? 6_000 : undefined,
      ...{ finishWithinMs: maybe(0.4, 20_000), maxPending: 1 + Math.floor(random.unit() * 4) },
      maxLifetimeMs: happens(random, 0.2) ? 15_000 : undefined,
      ...{ pricePerHour: 1, maxMachineHours: minutes && minutes * HOURS_PER_MINUTE },
      ...{ maxCost: undefined, maxCostPerHour: undefined, stopAtMs: undefined, advertise: undefined },
      provider: { kind: "exec", command: ["sim"], timeoutMs: 5_000, directory: "/" },
    },
    weather: {
      delayMaxMs: happens(random, 0.3) ? 400 : 40,
      lateChance: maybe(0.4, 0.1),
      silentChance: maybe(0.4, 0.15),
      failChance: maybe(0.4, 0.15),
      fullChance: maybe(0.2, 0.2),
      refuseChance: maybe(0.2, 0.2),
      repeatChance: maybe(0.3, 0.2),
      oddChance: maybe(0.2, 0.3),
      queueMaxMs: maybe(0.5, 4_000),
      bootMaxMs: happens(random, 0.4) ? 8_000 : 500,
      mutedChance: maybe(0.2, 0.2),
      takenChance: maybe(0.4, 0.05),
    },
  };
}

/** One worker is there in any case; the fleet brings the others. */
export function withFleet(drawn: Settings): Settings {
  const faults = [...new Set([...drawn.faults, ...ALWAYS])];
  return {
    ...drawn,
    ...{ release: undefined, workers: 1, callers: 0, items: Math.max(drawn.items, WORK.items), faults },
    // Machines come with the first version of the code, and an actor may wait for the second for ever.
    hasActors: false,
    kinds: { ...drawn.kinds, slow: Math.max(drawn.kinds.slow ?? 0, WORK.slow) },
    ...{ stormMs: drawn.stormMs * WORK.storms, fleet: drawFleet(drawn) },
  };
}

/** Nothing is broken: the run has a fleet. */
export const WITH_FLEET: Variant = { name: "with a fleet", settings: withFleet };
