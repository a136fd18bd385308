// The row in which a coordinator says that it is there. Each writes its own and no other, with each heartbeat, and expects it as it left
// it; a leader expects its epoch as well (C1), so that nothing of a fenced one is written.
import { epoch } from "../../base/ids.ts";
import type { Epoch, IncarnationId } from "../../base/ids.ts";
import { encodeRecord } from "../../storage/codec.ts";
import type { RecordType } from "../../storage/codec.ts";
import { coordinatorKey, RECORD_KIND } from "../../storage/keys.ts";
import type { Expectation, Store } from "../../storage/store.ts";

/** The states of the role's chart, without the one that two of them are in. */
export const ROLES = ["Following", "Claiming", "Leader", "Fenced", "Halted"] as const;
export type RoleName = (typeof ROLES)[number];

export interface PresenceRow {
  /** Host and port at which others reach it; empty when it does not say. */
  readonly address: string;
  readonly weight: number;
  readonly role: RoleName;
  /** Whether it would take over now: it is not one that has just made room for another. */
  readonly isWilling: boolean;
  /** The leadership that it has or follows; null when it knows of none. */
  readonly epoch: Epoch | null;
  /** The latest `CoordinatorSnapshot` that it has published or applied. */
  readonly snapshotNumber: number | null;
  readonly rehearsalMs: number | null;
  readonly rehearsedAtWallMs: number | null;
  /** Null for a leader, and where it cannot tell. */
  readonly hearsLeader: boolean | null;
  /** Since when it leads; null for one that does not, and in the row of an earlier version. */
  readonly electedAtWallMs: number | null;
  /** Grows with each writing: whoever sees the row change knows that the process lives. */
  readonly heartbeat: number;
}

export const presenceRecord: RecordType<PresenceRow> = {
  kind: RECORD_KIND.presence,
  name: "coordinator",
  encode: (row) => [
    row.address,
    row.weight,
    row.role,
    row.isWilling,
    row.epoch,
    row.snapshotNumber,
    row.rehearsalMs,
    row.rehearsedAtWallMs,
    row.hearsLeader,
    row.heartbeat,
    ...(row.electedAtWallMs === null ? [] : [row.electedAtWallMs]),
  ],
  decode: (fields) => ({
    address: fields.text(0),
    weight: fields.integer(1),
    role: ROLES.find((role) => role === fields.text(2)) ?? fields.refuse(2, "is no role of a coordinator"),
    isWilling: fields.boolean(3),
    epoch: fields.isNull(4) ? null : epoch(fields.integer(4)),
    snapshotNumber: fields.isNull(5) ? null : fields.integer(5),
    rehearsalMs: fields.isNull(6) ? null : fields.number(6),
    rehearsedAtWallMs: fields.isNull(7) ? null : fields.number(7),
    hearsLeader: fields.isNull(8) ? null : fields.boolean(8),
    heartbeat: fields.integer(9),
    electedAtWallMs: fields.length > 10 ? fields.number(10) : null,
  }),
};

/** The row of this process. */
export class Presence {
  readonly #store: Store;
  readonly #key: string;
  /** As it was last written; null before that. */
  #bytes: Uint8Array | null = null;
  #heartbeats = 0;

  constructor(store: Store, incarnation: IncarnationId) {
    this.#store = store;
    this.#key = coordinatorKey(incarnation);
  }

  /** False when it was not written, as far as anybody can tell. `epochRow` is a leader's. Never rejects. */
  async announce(row: Omit<PresenceRow, "heartbeat">, epochRow?: Expectation): Promise<boolean> {
    const value = encodeRecord(presenceRecord, this.#key, { ...row, heartbeat: ++this.#heartbeats });
    const outcome = await this.#store.commit({
      puts: [{ key: this.#key, value }],
      deletes: [],
      expect: [{ key: this.#key, value: this.#bytes }, ...(epochRow === undefined ? [] : [epochRow])],
      durability: "flush",
    });
    if (outcome.kind === "committed") this.#bytes = value;
    else await this.#readAgain();
    return outcome.kind === "committed";
  }

  /** Takes the row away: the process leaves of its own will. Never rejects. */
  async withdraw(): Promise<void> {
    if (this.#bytes === null) return;
    const expect = [{ key: this.#key, value: this.#bytes }];
    this.#bytes = null;
    await this.#store.commit({ puts: [], deletes: [this.#key], expect, durability: "flush" });
  }

  /** The row may have been written although nobody said so, or been taken away as one of a process that is gone. */
  async #readAgain(): Promise<void> {
    await this.#store.get(this.#key).then(
      (found) => (this.#bytes = found ?? null),
      () => undefined,
    );
  }
}
