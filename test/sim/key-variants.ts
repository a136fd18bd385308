// Clusters that are broken in how they keep keys: each is noticed.
import { RUNNING } from "../../src/coordinator/keys/key.ts";
import { MAIL_PREFIX, STATES_PREFIX } from "../../src/storage/keys.ts";
import { decodeRecord } from "../../src/storage/codec.ts";
import { checkpointRecord, encodeCheckpoint } from "../../src/worker/partitions/checkpoint-record.ts";
import type { Settings } from "./settings.ts";
import type { Variant } from "./variant.ts";
import { committing } from "./variants.ts";

const FAULTS: Settings["faults"] = ["worker-kill", "coordinator-kill"];

function keyed(drawn: Settings, parts: Partial<Settings> = {}): Settings {
  const calm = {
    callers: 0,
    coordinators: 1,
    faults: FAULTS,
    keys: 3,
    skipsFailed: false,
    hasCheckpoints: false,
  };
  return { ...drawn, ...calm, steering: { pauses: false, retries: false, cancels: false }, ...parts };
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
          keys.settled(head.place, { kind: "done", left: undefined, commit: 0 });
    },
  },
  {
    name: "a key passes what has failed",
    settings: (drawn) => keyed(drawn, { kinds: { big: 0.4 } }),
    inspect: ({ keys }) => {
      for (const key of keys.table) if (key.row.context.hasFailed) keys.steer(key.text, "skip");
    },
  },
];
