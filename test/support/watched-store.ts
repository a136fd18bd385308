// A store that remembers what was read of it, and what was committed to it.
import type { Batch, CommitOutcome, Entry, ScanRange } from "../../src/storage/store.ts";
import { DelegatingStore } from "./delegating-store.ts";

export class WatchedStore extends DelegatingStore {
  /** How often a single key was read. */
  gets = 0;
  /** How often keys were read together. */
  lookUps = 0;
  /** Each scan, and the rows that it brought. */
  readonly scans: { readonly range: ScanRange; readonly rows: readonly Entry[] }[] = [];

  /** Each batch, whatever became of it. */
  readonly commits: Batch[] = [];

  override commit(batch: Batch): Promise<CommitOutcome> {
    this.commits.push(batch);
    return super.commit(batch);
  }

  override get(key: string): Promise<Uint8Array | undefined> {
    this.gets++;
    return super.get(key);
  }

  override getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    this.lookUps++;
    return super.getMany(keys);
  }

  override async scan(range: ScanRange): Promise<Entry[]> {
    const rows = await super.scan(range);
    this.scans.push({ range, rows });
    return rows;
  }

  /** How often anything was read. */
  get readings(): number {
    return this.gets + this.lookUps + this.scans.length;
  }

  /** The bytes of the values of the largest scan. */
  get largestBytes(): number {
    return Math.max(...this.scans.map(({ rows }) => rows.reduce((sum, { value }) => sum + value.length, 0)));
  }
}
