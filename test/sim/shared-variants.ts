// Clusters of three coordinators over one database that are broken on purpose: each lacks one of the rules by which no two lead, no
// epoch is given twice, and nothing is lost with a database.
import type { LeaderElector } from "../../src/coordinator/lead/elector.ts";
import type { CoordinatorEnvelope, WorkerEnvelope } from "../../src/gen/rollout/v1/common_pb.ts";
import { decodeRecord, encodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import { COORDINATOR_LEASE_KEY, EPOCH_KEY } from "../../src/storage/keys.ts";
import type { Batch, CommitOutcome, Store } from "../../src/storage/store.ts";
import { NO_GENERATION } from "../../src/storage/store.ts";
import { DelegatingStore } from "../support/delegating-store.ts";
import { leaseRow } from "../support/ledger-rows.ts";
import { CALM_DATABASE, CALM_NETWORK, COORDINATORS } from "./settings.ts";
import type { Fault, Settings } from "./settings.ts";
import type { SimProcess } from "./process.ts";
import type { Tap } from "./sim-transport.ts";
import type { Variant } from "./variant.ts";

/** Three coordinators under these kinds of trouble and no others, so much work, and so much of it under way. */
function sharing(...faults: Fault[]): (drawn: Settings) => Settings {
  return (drawn) => ({
    ...drawn,
    ...{ coordinators: COORDINATORS, faults, callers: 0, items: Math.max(drawn.items, 40) },
    ...{ stormMs: 12_000, faultEveryMs: 1_500, clockRates: false, kinds: { slow: 0.3 } },
    ...{ network: CALM_NETWORK, database: CALM_DATABASE },
  });
}

/** An operator who submits, seals and looks. */
const UNSTEERED: Settings["steering"] = { pauses: false, retries: false, cancels: false };

/** Another way to commit. */
function committing(change: (batch: Batch) => Batch): (store: Store) => Store {
  return (store) =>
    new (class extends DelegatingStore {
      override commit(batch: Batch): Promise<CommitOutcome> {
        return super.commit(change(batch));
      }
    })(store);
}

const isClaim = ({ puts }: Batch): boolean => puts.some(({ key }) => key === EPOCH_KEY);

function isResignation({ puts }: Batch): boolean {
  const row = puts.find(({ key }) => key === COORDINATOR_LEASE_KEY);
  if (row === undefined) return false;
  const [, holder] = okOrFailure("sim", decodeRecord(leaseRow, COORDINATOR_LEASE_KEY, row.value));
  return holder === null;
}

function withoutGeneration(store: Store): Store {
  return new (class extends DelegatingStore {
    override get generation(): string {
      return NO_GENERATION;
    }
  })(store);
}

const isRenewal = ({ puts, deletes }: Batch): boolean =>
  puts.length > 0 && deletes.length === 0 && puts.every(({ key }) => key === COORDINATOR_LEASE_KEY);

/** A claim whose answer was lost, and that is seen, is followed by a renewal that lasts. This one says that there was one. */
function withoutSyncedRenewals(store: Store): Store {
  return new (class extends DelegatingStore {
    override commit(batch: Batch): Promise<CommitOutcome> {
      const isUnneeded = isRenewal(batch) && batch.durability === "sync" && !isResignation(batch);
      return isUnneeded ? Promise.resolve({ kind: "committed" }) : super.commit(batch);
    }
  })(store);
}

/** A batch that writes nothing is answered without the database. */
function unconfirmed(store: Store): Store {
  return new (class extends DelegatingStore {
    override commit(batch: Batch): Promise<CommitOutcome> {
      const isEmpty = batch.puts.length + batch.deletes.length === 0;
      return isEmpty ? Promise.resolve({ kind: "committed" }) : super.commit(batch);
    }
  })(store);
}

/** A claim is answered by a store that goes by the generation of before it, until somebody looks again. */
function claimingUnseen(store: Store): Store {
  let before: string | undefined;
  return new (class extends DelegatingStore {
    override get generation(): string {
      return before ?? super.generation;
    }

    override get(key: string): Promise<Uint8Array | undefined> {
      if (key === COORDINATOR_LEASE_KEY) before = super.generation;
      return super.get(key);
    }

    override commit(batch: Batch): Promise<CommitOutcome> {
      if (!isClaim(batch)) before = undefined;
      return super.commit(batch);
    }
  })(store);
}

/** To the coordinator of this machine a lease that another one holds is free, because it stands first. */
function impatient(name: string): (store: Store, process: SimProcess) => Store {
  return (store, { machine }) => (machine.name === name ? freeing(store) : store);
}

function freeing(store: Store): Store {
  let own: string | null = null;
  /** As it was shown → as it stands there. */
  const shown = new Map<string, Uint8Array>();
  const textOf = (value: Uint8Array | null): string => Buffer.from(value ?? []).toString("hex");
  return new (class extends DelegatingStore {
    override async get(key: string): Promise<Uint8Array | undefined> {
      const found = await super.get(key);
      if (found === undefined || key !== COORDINATOR_LEASE_KEY) return found;
      const [epoch, holder, ...rest] = fieldsOfLease(found);
      if (holder === null || holder === own) return found;
      const free = encodeRecord(leaseRow, key, [epoch, null, ...rest]);
      shown.set(textOf(free), found);
      return free;
    }

    override commit(batch: Batch): Promise<CommitOutcome> {
      const row = batch.puts.find(({ key }) => key === COORDINATOR_LEASE_KEY);
      if (row !== undefined) own = fieldsOfLease(row.value)[1] ?? own;
      const expect = batch.expect.map(({ key, value }) => ({
        key,
        value: shown.get(textOf(value)) ?? value,
      }));
      return super.commit({ ...batch, expect });
    }
  })(store);
}

function fieldsOfLease(value: Uint8Array) {
  return okOrFailure("sim", decodeRecord(leaseRow, COORDINATOR_LEASE_KEY, value));
}

/** The lease row without its count of renewals. */
function uncounted<Row extends { readonly key: string; readonly value: Uint8Array | null }>(row: Row): Row {
  if (row.key !== COORDINATOR_LEASE_KEY || row.value === null) return row;
  const [epoch, holder, , ...rest] = okOrFailure("sim", decodeRecord(leaseRow, row.key, row.value));
  return { ...row, value: encodeRecord(leaseRow, row.key, [epoch, holder, 0, ...rest]) };
}

/** Messages of workers and to them, as far as they say who leads. */
interface Telling {
  readonly worker?: WorkerEnvelope;
  readonly beat?: { readonly worker?: WorkerEnvelope };
  readonly ack?: Told;
}

interface Told {
  coordinator?: CoordinatorEnvelope;
}

/** No leader hears which epochs workers have seen. */
function hidingEpochsSeen(onDown: (told: Told) => void = () => undefined): Tap {
  return {
    onStream: () => ({
      onMessage: (direction, message) => {
        const { worker, beat, ack } = message as Telling;
        if (direction === "down") onDown(ack ?? (message as Told));
        else delete (worker ?? beat?.worker)?.epochSeen;
        return [message];
      },
    }),
  };
}

/** The messages of all leaders name the latest epoch that any of them had: no worker can tell an older one from it. */
function namingTheLatest(): Tap {
  let latest = 0n;
  return hidingEpochsSeen((told) => {
    if (told.coordinator?.coordEpoch === undefined) return;
    const { coordEpoch } = told.coordinator;
    if (coordEpoch > latest) latest = coordEpoch;
    // The leader has one envelope for all of its messages.
    told.coordinator = { ...told.coordinator, coordEpoch: latest };
  });
}

/** The store comes back older again and again, each time without the last claim, and nobody's host knows of it. */
const forgotten = (drawn: Settings): Settings => ({
  ...sharing("database-older")(drawn),
  ...{ stormMs: 40_000, faultEveryMs: 10_000, items: 80, kinds: { slow: 0.5 }, slots: 1 },
  database: { ...CALM_DATABASE, copyLacks: [1_000, 1_000] },
});

/**
 * Little work that is soon done, and once or twice a copy without any of it takes the store's place, there again at once: the operator, who
 * submits everything anew in that moment, is answered before the leader has committed anything.
 */
const beginsAnew = (drawn: Settings): Settings => ({
  ...sharing("database-older")(drawn),
  ...{ workers: 1, items: 1, keys: 0, kinds: {}, steering: UNSTEERED, stormMs: 8_000, faultEveryMs: 4_000 },
  database: { ...CALM_DATABASE, awayMaxMs: 0, copyLacks: [1_000, 1_000] },
});

/** A leader that goes by what it once was told. */
function heedless(elector: LeaderElector): LeaderElector {
  let hasWon = false;
  return {
    campaign: async (campaign) => {
      const leadership = await elector.campaign({ ...campaign, onLost: () => {} });
      hasWon = true;
      return leadership;
    },
    mayAct: () => hasWon,
    isLeader: () => elector.isLeader(),
    resign: () => elector.resign(),
  };
}

export const SHARED_VARIANTS: readonly Variant[] = [
  {
    name: "batches do not expect the epoch row",
    settings: sharing("successor"),
    coordinatorStore: committing((batch) => (isClaim(batch) ? batch : { ...batch, expect: [] })),
  },
  {
    name: "the database does not look at what is expected",
    // A leader is cut off for longer than its lease, and what was on its way comes when another one leads.
    settings: (drawn) => ({ ...sharing("database-cut")(drawn), stormMs: 60_000, faultEveryMs: 8_000 }),
    carriedOut: (batch) => ({ ...batch, expect: [] }),
  },
  {
    name: "a lease is taken to be over before its leader knows",
    settings: sharing("database-cut"),
    timing: { ttlMs: 2_000, renewalMs: 1_000, deadlineMs: 4_000 },
  },
  {
    name: "a leader does not look at its deadline",
    from: 11,
    settings: (drawn) => ({
      ...sharing("successor")(drawn),
      ...{ stormMs: 20_000, kinds: {}, items: 200, database: { ...CALM_DATABASE, delayMaxMs: 100 } },
    }),
    elector: heedless,
  },
  {
    name: "claims do not expect the rows that were read",
    settings: (drawn) => ({
      ...sharing("coordinator-kill")(drawn),
      database: { ...CALM_DATABASE, delayMaxMs: 400 },
    }),
    coordinatorStore: committing((batch) => (isClaim(batch) ? { ...batch, expect: [] } : batch)),
  },
  {
    name: "a resignation deletes the rows",
    settings: sharing("coordinator-restart"),
    coordinatorStore: committing((batch) =>
      isResignation(batch) ? { ...batch, puts: [], deletes: batch.puts.map(({ key }) => key) } : batch,
    ),
  },
  {
    name: "claims are not synced",
    settings: sharing("database-promotion", "coordinator-kill"),
    coordinatorStore: committing((batch) => (isClaim(batch) ? { ...batch, durability: "flush" } : batch)),
  },
  {
    name: "nobody notices that the database has lost what it was to flush",
    settings: (drawn) => ({
      ...sharing("database-restart")(drawn),
      ...{ faultEveryMs: 1_000, database: { ...CALM_DATABASE, awayMaxMs: 0 } },
    }),
    afterLoss: "trusts blindly",
  },
  {
    name: "a follower whose row was lost with a crash writes nothing any more",
    settings: sharing("database-restart"),
    afterLoss: "is silent",
  },
  {
    name: "a store of another generation is taken for the same, by hosts that remember nothing",
    settings: sharing("database-older", "coordinator-restart"),
    coordinatorStore: withoutGeneration,
    forgets: true,
  },
  {
    noticedAs: /claim may still be lost/,
    name: "a claim that is seen after its answer was lost counts without a renewal that lasts",
    settings: (drawn) => ({
      ...sharing("standby-away", "coordinator-kill")(drawn),
      ...{ stormMs: 30_000, faultEveryMs: 1_000 },
    }),
    coordinatorStore: withoutSyncedRenewals,
  },
  {
    name: "each renewal writes the row that stood there before",
    settings: sharing("coordinator-restart"),
    coordinatorStore: committing((batch) => ({
      ...batch,
      puts: batch.puts.map(uncounted),
      expect: batch.expect.map(uncounted),
    })),
  },
  {
    name: "a coordinator that stands first takes the lease without waiting for its end",
    noticedAs: /may still act/,
    // One that has stepped down waits until it sees another one hold the lease; one that starts does not.
    settings: sharing("coordinator-restart"),
    coordinatorStore: impatient("c1"),
  },
  {
    name: "a claim counts though the database went on as another generation since the look, of hosts that remember nothing",
    noticedAs: /was given already/,
    settings: (drawn) => ({
      ...sharing("database-older", "coordinator-stop", "step-down")(drawn),
      ...{ stormMs: 30_000, faultEveryMs: 1_000 },
      database: { ...CALM_DATABASE, slowChance: 0.1, awayMaxMs: 100, copyLacks: [0, 20] },
    }),
    coordinatorStore: claimingUnseen,
    forgets: true,
  },
  {
    name: "an operator is told of decisions that its store was not asked for",
    noticedAs: /does not end|was told that the run is sealed/,
    settings: beginsAnew,
    coordinatorStore: unconfirmed,
  },
  {
    name: "workers obey leaders that are older than one that they have met",
    noticedAs: /obeys a leader/,
    settings: forgotten,
    tap: namingTheLatest,
    forgets: true,
  },
];
