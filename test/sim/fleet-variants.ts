// Clusters with a fleet that are broken on purpose: between the coordinator and its disk, or between it and the provider.
import { allocationRecord } from "../../src/coordinator/fleet/records.ts";
import type { FleetPorts } from "../../src/coordinator/fleet/fleets.ts";
import type { FleetAnswer } from "../../src/coordinator/fleet/ports.ts";
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import { ALLOCATIONS_PREFIX } from "../../src/storage/keys.ts";
import type { Entry } from "../../src/storage/store.ts";
import { withFleet } from "./fleet-mix.ts";
import type { FleetMix } from "./fleet-settings.ts";
import type { Settings } from "./settings.ts";
import type { SimFleet } from "./sim-fleet.ts";
import type { Variant } from "./variant.ts";
import { committing } from "./variants.ts";

const HOURS_PER_LEASE = 1 / 12;

/** A fleet in whatever weather it takes. */
function having(change: (mix: FleetMix) => FleetMix = (mix) => mix): (drawn: Settings) => Settings {
  return (drawn) => {
    const settings = withFleet(drawn);
    return { ...settings, coordinators: 1, fleet: settings.fleet && change(settings.fleet) };
  };
}

function isRequest({ key, value }: Entry): boolean {
  if (!key.startsWith(ALLOCATIONS_PREFIX)) return false;
  return okOrFailure("disk", decodeRecord(allocationRecord, key, value)).standing.state === "Requested";
}

type Listed = Extract<FleetAnswer, { readonly verb: "list" }>["answer"];

/** Lists that say something else than the provider does. */
function listing(change: (answer: Listed, fleet: SimFleet) => Listed): NonNullable<Variant["fleets"]> {
  return (ports: FleetPorts, fleet) => ({
    ...ports,
    ask: async (question) => {
      const heard = await ports.ask(question);
      return heard.verb === "list" ? { ...heard, answer: change(heard.answer, fleet) } : heard;
    },
  });
}

export const FLEET_VARIANTS: readonly Variant[] = [
  {
    name: "a launch leaves before its row is written",
    noticedAs: /launched without a row/,
    settings: having(),
    coordinatorStore: committing((batch, commit) =>
      commit({ ...batch, puts: batch.puts.filter((put) => !isRequest(put)) }),
    ),
  },
  {
    name: "a list that failed is taken for an empty one",
    noticedAs: /and its machine goes on/,
    settings: having((mix) => ({
      ...mix,
      weather: { ...mix.weather, failChance: 0.1, bootMaxMs: 18_000, queueMaxMs: 8_000 },
    })),
    fleets: listing((answer) => (answer.kind === "unknown" ? { kind: "listed", allocations: [] } : answer)),
  },
  {
    name: "machines of another store are taken for orphans of this one",
    noticedAs: /machine of another run/,
    settings: having(),
    fleets: listing((answer, { provider }) =>
      answer.kind === "unknown" ? answer : { kind: "listed", allocations: provider.everybodys },
    ),
  },
  {
    name: "the budget is booked when a machine is over, and not claimed before",
    noticedAs: /the budget is less/,
    settings: having((mix) => ({
      ...mix,
      settings: { ...mix.settings, max: 4, maxMachineHours: 11 / 60, finishWithinMs: 0 },
    })),
    // So much more as those that are there have claimed.
    fleetSettings: (settings, { witness }) => ({
      ...settings,
      get maxMachineHours() {
        return (settings.maxMachineHours ?? 0) + witness.live * HOURS_PER_LEASE;
      },
    }),
  },
];
