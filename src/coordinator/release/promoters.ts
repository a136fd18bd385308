// When the verdict on a stage is looked at, by two that know nothing of each other. The streaming one looks in each turn that has judged
// something; the batch one every ten seconds of turn time, over the counts as they are stored: what only time decides is decided by it, and
// what the first one has missed is found by it.
//
// Keeps true: neither acts on its own word. The store is asked whether this coordinator leads, and the verdict is made again when the
// answer is there; one question is under way at most. Counts in memory are those of the store, revision by revision.
import { decodeRecord, recordChecksum } from "../../storage/codec.ts";
import type { Damage } from "../../storage/codec.ts";
import { countsRecord } from "./records.ts";
import type { StageCounts } from "./counts.ts";
import type { ReleaseTurn } from "./ports.ts";

const BATCH_EVERY_MS = 10_000;

/** The counts as they were written last: which revision of them, and the checksum of its row. */
export interface WrittenCounts {
  readonly revision: number;
  readonly checksum: number;
}

/** Whether the verdict on these counts asks for a step. */
type Acts = (counts: StageCounts) => boolean;

export class Promoters {
  #isAsking = false;
  /** When the batch promoter has looked last; monotonic. */
  #lookedAtMs: number;
  /** The row that is being read, and what was written to it since it was asked for: revision → checksum. */
  #reading: { readonly key: string; readonly written: Map<number, number> } | undefined;

  constructor(nowMs: number) {
    this.#lookedAtMs = nowMs;
  }

  /** At the end of a turn that has judged something. */
  stream(turn: ReleaseTurn, counts: StageCounts, acts: Acts): void {
    if (acts(counts)) this.#confirm(turn);
  }

  /** At each tick; `last` is what was written last of the counts. */
  tick(turn: ReleaseTurn, key: string, last: WrittenCounts): void {
    if (turn.nowMs - this.#lookedAtMs < BATCH_EVERY_MS || this.#reading !== undefined) return;
    this.#lookedAtMs = turn.nowMs;
    this.#reading = { key, written: new Map([[last.revision, last.checksum]]) };
    turn.ask({ kind: "readCounts", key });
  }

  /** The counts were written. */
  noteWritten(key: string, { revision, checksum }: WrittenCounts): void {
    if (this.#reading?.key === key) this.#reading.written.set(revision, checksum);
  }

  /** The stored counts. Returns what is wrong with them: no leader goes on by counts that are not those of its turns. */
  onRead(
    turn: ReleaseTurn,
    { key, value }: { readonly key: string; readonly value: Uint8Array | undefined },
    acts: Acts,
  ): Damage | undefined {
    const reading = this.#reading;
    this.#reading = undefined;
    if (reading?.key !== key) return undefined;
    if (value === undefined) return { kind: "corrupt", key, reason: "the counts of a stage are missing" };
    const stored = decodeRecord(countsRecord, key, value);
    if (stored.kind !== "ok") return stored;
    if (reading.written.get(stored.value.revision) !== recordChecksum(value))
      return { kind: "corrupt", key, reason: "the counts of a stage are not those that were counted" };
    if (acts(stored.value)) this.#confirm(turn);
    return undefined;
  }

  /** The store has said whether this coordinator leads. */
  confirmed(): void {
    this.#isAsking = false;
  }

  #confirm(turn: ReleaseTurn): void {
    if (this.#isAsking) return;
    this.#isAsking = true;
    turn.ask({ kind: "confirmLeadership" });
  }
}
