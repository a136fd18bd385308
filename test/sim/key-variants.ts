// Clusters that are broken in how they keep keys: each is noticed.
import { assignmentRecord } from "../../src/coordinator/keys/assignment.ts";
import type { AssignmentRecord } from "../../src/coordinator/keys/assignment.ts";
import { DELAYED, RUNNING } from "../../src/coordinator/keys/key.ts";
import { decodeRecord, encodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import { ASSIGNMENT_KEY, MAIL_PREFIX, STATES_PREFIX } from "../../src/storage/keys.ts";
import type { Entry, Store } from "../../src/storage/store.ts";
import { DelegatingStore } from "../support/delegating-store.ts";
import type { SimProcess } from "./process.ts";
import { checkpointRecord, encodeCheckpoint } from "../../src/worker/partitions/checkpoint-record.ts";
import type { Settings } from "./settings.ts";
import type { Variant } from "./variant.ts";
import { committing, passOffStaleResults } from "./variants.ts";

const FAULTS: Settings["faults"] = ["worker-kill", "coordinator-kill"];

/** Long, with work for all of it. */
const STORM = { stormMs: 20_000, faultEveryMs: 1_500, items: 60, kinds: { slow: 0.6 } };

function keyed(drawn: Settings, parts: Partial<Settings> = {}): Settings {
  const calm = {
    callers: 0,
    coordinators: 1,
    faults: FAULTS,
    keys: 3,
    hasActors: false,
    skipsFailed: false,
    hasCheckpoints: false,
  };
  return { ...drawn, ...calm, steering: { pauses: false, retries: false, cancels: false }, ...parts };
}

/** A worker that was on the ring stays on it. */
function keepingMembers(store: Store): Store {
  const members = new Set<AssignmentRecord["members"][number]>();
  const withAll = (entry: Entry): Entry => {
    const { key, value } = entry;
    if (key !== ASSIGNMENT_KEY) return entry;
    const assignment = okOrFailure("", decodeRecord(assignmentRecord, key, value));
    for (const member of assignment.members) members.add(member);
    const kept = { ...assignment, members: [...members] };
    return { key, value: encodeRecord(assignmentRecord, key, kept) };
  };
  return committing((batch, commit) => commit({ ...batch, puts: batch.puts.map(withAll) }))(store);
}

/** Every process but the first finds no assignment. */
function forgettingAssignment(store: Store, { name }: SimProcess): Store {
  return new (class extends DelegatingStore {
    override get(key: string): Promise<Uint8Array | undefined> {
      return name !== "c.1" && key === ASSIGNMENT_KEY ? Promise.resolve(undefined) : super.get(key);
    }
  })(store);
}

export const KEY_VARIANTS: readonly Variant[] = [
  {
    name: "a result is recorded without the state of its key",
    settings: (drawn) => keyed(drawn),
    coordinatorStore: committing((batch, commit) =>
      commit({ ...batch, puts: batch.puts.filter(({ key }) => !key.startsWith(STATES_PREFIX)) }),
    ),
  },
  {
    name: "items behind the head of their key are not written down",
    settings: (drawn) => keyed(drawn),
    coordinatorStore: committing((batch, commit) =>
      commit({ ...batch, puts: batch.puts.filter(({ key }) => !key.startsWith(MAIL_PREFIX)) }),
    ),
  },
  {
    name: "checkpoints have other states under the right commits",
    settings: (drawn) => keyed(drawn, { hasCheckpoints: true }),
    checkpointStore: (store) => ({
      name: store.name,
      write: (place, bytes) => store.write(place, bytes),
      read: async (place, maxBytes) => {
        const bytes = await store.read(place, maxBytes);
        const found = bytes && decodeRecord(checkpointRecord, place, bytes);
        if (found?.kind !== "ok") return bytes;
        const states = found.value.states.map((state) => ({ ...state, state: new Uint8Array() }));
        return encodeCheckpoint(place, { ...found.value, states });
      },
    }),
  },
  {
    name: "a key goes on while it runs",
    settings: (drawn) => keyed(drawn),
    noticedAs: /K1/,
    inspect: ({ keys }) => {
      for (const { row, head } of keys.table)
        if (row.state === RUNNING && head !== undefined)
          keys.settled(head.place, { kind: "done", left: undefined, commit: 0, output: Buffer.of() });
    },
  },
  {
    name: "a key passes what has failed",
    settings: (drawn) => keyed(drawn, { kinds: { big: 0.4 } }),
    inspect: ({ keys }) => {
      for (const key of keys.table) if (key.row.context.hasFailed) keys.steer(key.text, "skip");
    },
  },
  {
    name: "a key passes what is to be tried again",
    settings: (drawn) => keyed(drawn, { kinds: { flaky: 0.4 } }),
    noticedAs: /K1/,
    inspect: ({ keys }) => {
      for (const { row, head } of keys.table) {
        if (row.state !== DELAYED || head === undefined) continue;
        keys.due(head.place);
        keys.assigned(head.place);
        keys.settled(head.place, { kind: "done", left: undefined, commit: 0, output: Buffer.of() });
      }
    },
  },
  {
    name: "the state of a stale attempt is committed",
    settings: (drawn) =>
      keyed(drawn, {
        ...STORM,
        ...{ faults: ["worker-stop"], keys: 8, unkeyedEvery: 1_000 },
      }),
    noticedAs: /K2/,
    tap: passOffStaleResults,
  },
  {
    name: "a worker that is dead stays on the ring",
    settings: (drawn) => keyed(drawn, { faults: ["worker-stop"], ...STORM }),
    noticedAs: /is on the ring and/,
    coordinatorStore: keepingMembers,
  },
  {
    name: "the assignment begins anew at a restart",
    from: 6,
    settings: (drawn) => keyed(drawn),
    noticedAs: /the assignment epoch goes/,
    coordinatorStore: forgettingAssignment,
  },
];
