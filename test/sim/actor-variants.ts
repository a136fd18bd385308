// Clusters that are broken in how they keep actors: each is noticed, by the shadow that executes their events once more.
import type { Keys } from "../../src/coordinator/keys/keys.ts";
import type { CoordinatorState } from "../../src/coordinator/turn/state.ts";
import { isInside, isPlace } from "../../src/coordinator/ledger/place.ts";
import { ITEMS_PREFIX, STATES_PREFIX, TIMERS_PREFIX } from "../../src/storage/keys.ts";
import type { Batch } from "../../src/storage/store.ts";
import type { Settings } from "./settings.ts";
import type { Variant } from "./variant.ts";
import { committing } from "./variants.ts";

/** Actors that have much to do, under the kinds of trouble that a variant names. */
function acting(drawn: Settings, ...faults: Settings["faults"]): Settings {
  const calm = {
    callers: 0,
    coordinators: 1,
    keys: 4,
    hasActors: true,
    release: undefined,
    skipsFailed: true,
    hasCheckpoints: false,
  };
  const steering = { pauses: false, retries: false, cancels: false };
  return { ...drawn, ...calm, steering, faults, items: Math.max(drawn.items, 30), kinds: {} };
}

function asksForItems({ puts }: Batch): boolean {
  return puts.some(({ key }) => {
    const place = key.slice(ITEMS_PREFIX.length);
    return key.startsWith(ITEMS_PREFIX) && isPlace(place) && isInside(place);
  });
}

/** An end that waits in the mail is passed off as one of the invocation or child that is live now. */
function passOffOldEnds({ table }: Keys): void {
  for (const { actor, head, next } of table)
    for (const letter of [...(head === undefined ? [] : [head]), ...next]) {
      const { origin } = letter.item ?? {};
      if (letter.item === undefined || (origin?.kind !== "outcome" && origin?.kind !== "failure")) continue;
      const number = actor?.live.get(origin.id)?.number ?? origin.number;
      if (number !== origin.number) letter.item = { ...letter.item, origin: { ...origin, number } };
    }
}

/** Every leader but the first finds actors without the children that they have begun. */
function forgettingChildren(): (state: CoordinatorState) => void {
  const met = new WeakSet<CoordinatorState>();
  return (state) => {
    if (met.has(state)) return;
    met.add(state);
    if (state.epoch > 1)
      for (const { actor } of state.keys.table)
        for (const { id, isChild } of actor?.live.values() ?? []) if (isChild) actor?.live.delete(id);
  };
}

export const ACTOR_VARIANTS: readonly Variant[] = [
  {
    name: "a message is committed without the state that has sent it",
    settings: (drawn) => acting(drawn, "worker-kill"),
    noticedAs: /K2: an event of .* is done, and its state is not committed/,
    coordinatorStore: committing((batch, commit) =>
      commit(
        asksForItems(batch)
          ? { ...batch, puts: batch.puts.filter(({ key }) => !key.startsWith(STATES_PREFIX)) }
          : batch,
      ),
    ),
  },
  {
    name: "a timer outlives its state",
    settings: (drawn) => acting(drawn, "worker-kill"),
    noticedAs: /K12: timer .* has outlived its state|K11: timer .* is not armed/,
    coordinatorStore: committing((batch, commit) =>
      commit({ ...batch, deletes: batch.deletes.filter((key) => !key.startsWith(TIMERS_PREFIX)) }),
    ),
  },
  {
    name: "an outcome that is stale is heard",
    settings: (drawn) => acting(drawn),
    noticedAs: /K10/,
    inspect: ({ keys }) => passOffOldEnds(keys),
  },
  {
    name: "an event runs on a state of another version",
    settings: (drawn) => acting(drawn, "worker-kill"),
    noticedAs: /K8: a state of .* is given to code of 1/,
    inspect: ({ keys }) => {
      for (const key of keys.table) key.stateVersion = 0;
    },
  },
  {
    name: "an actor goes on without what has failed, unasked",
    from: 9,
    settings: (drawn) => ({ ...acting(drawn), skipsFailed: false }),
    noticedAs: /K3: nobody has asked to skip/,
    inspect: ({ keys }) => {
      for (const { row, text } of keys.table) if (row.context.hasFailed) keys.steer(text, "skip");
    },
  },
  {
    name: "children are forgotten at a restart",
    settings: (drawn) => ({
      ...acting(drawn, "coordinator-kill"),
      ...{ items: 50, stormMs: 30_000, faultEveryMs: 3_000 },
    }),
    noticedAs: /K9|K12/,
    inspect: forgettingChildren(),
  },
];
