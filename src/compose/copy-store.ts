// A run moved from one database to another: all rows as they are, and last of all the one that says whose they are. A copy that was cut
// off is led by nobody, as it lacks that row, and the same command begins it anew.
//
// Keeps true: nobody leads with either database meanwhile; the copy is compared row by row before it counts.
import { assert } from "../base/assert.ts";
import { failure } from "../base/errors.ts";
import type { RunId } from "../base/ids.ts";
import { ALL_KEYS, allRows } from "../storage/all-rows.ts";
import { COORDINATOR_LEASE_KEY, EPOCH_KEY, STORE_IDENTITY_KEY } from "../storage/keys.ts";
import { examineStoreIdentity } from "../storage/store-identity.ts";
import type { Batch, Entry, Store } from "../storage/store.ts";

export interface Copied {
  readonly rows: number;
  readonly bytes: number;
}

const PAGE = { limit: 1_000, bytesMax: 4 * 1_024 * 1_024 } as const;

/** `target` holds the run when this resolves. Throws store_… rows; `source` is left as it is. */
export async function copyStore(source: Store, target: Store, runId: RunId): Promise<Copied> {
  if ((await examineStoreIdentity(source, runId)) === undefined)
    throw unusable(source, "nothing was written to it yet", "name the database that the run has had so far");
  const copy = await StoreCopy.begin(target);
  const before = await leadershipOf(source);
  for await (const page of allRows(source, PAGE)) await copy.add(page);
  await compare(source, target);
  if (Buffer.compare(before, await leadershipOf(source)) !== 0)
    throw failure("store_held", { path: source.location, holder: "a coordinator, which leads now" });
  return copy.finish();
}

/** Rows on their way to a database in which there is no run. */
export class StoreCopy {
  readonly #target: Store;
  #identity: Entry | undefined;
  #rows = 0;
  #bytes = 0;

  private constructor(target: Store) {
    this.#target = target;
  }

  /** Takes away what is left of a copy that was cut off. Throws store_unusable where there is a run. */
  static async begin(target: Store): Promise<StoreCopy> {
    if ((await target.get(STORE_IDENTITY_KEY)) !== undefined)
      throw unusable(target, "it holds a run already", "copy to a database where there is none");
    await clear(target);
    return new StoreCopy(target);
  }

  get rows(): number {
    return this.#rows;
  }

  async add(page: readonly Entry[]): Promise<void> {
    this.#rows += page.length;
    this.#bytes += page.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
    const puts = page.filter(({ key }) => key !== STORE_IDENTITY_KEY);
    this.#identity ??= page.find(({ key }) => key === STORE_IDENTITY_KEY);
    if (puts.length > 0) await write(this.#target, { puts, deletes: [] }, "flush");
  }

  /** From now on it holds the run. */
  async finish(): Promise<Copied> {
    assert(this.#identity !== undefined, "a store that is copied says whose it is");
    // Synced, and all before it with it.
    await write(this.#target, { puts: [this.#identity], deletes: [] }, "sync");
    return { rows: this.#rows, bytes: this.#bytes };
  }
}

/** Rows of a copy that was cut off may be left, and the source may have changed since. */
async function clear(target: Store): Promise<void> {
  for (;;) {
    const page = await target.scan({ ...ALL_KEYS, ...PAGE });
    if (page.length === 0) return;
    await write(target, { puts: [], deletes: page.map(({ key }) => key) }, "flush");
  }
}

async function compare(source: Store, target: Store): Promise<void> {
  const copies = pagesOf(target);
  let copied: readonly Entry[] = [];
  let at = 0;
  const next = async (): Promise<Entry | undefined> => {
    for (let page; at >= copied.length && page?.done !== true;) {
      page = await copies.next();
      [copied, at] = [page.value ?? [], 0];
    }
    return copied[at++];
  };
  for await (const page of pagesOf(source))
    for (const { key, value } of page) {
      const copy = await next();
      const isSame = copy?.key === key && Buffer.compare(copy.value, value) === 0;
      if (!isSame) throw differs(target, key);
    }
  const left = await next();
  if (left !== undefined) throw differs(target, left.key);
}

/** Every row but the identity. */
async function* pagesOf(store: Store): AsyncGenerator<readonly Entry[], undefined, undefined> {
  for await (const page of allRows(store, PAGE)) yield page.filter(({ key }) => key !== STORE_IDENTITY_KEY);
  return undefined;
}

/** Nobody has made a run of it meanwhile. */
async function write(
  target: Store,
  writes: Pick<Batch, "puts" | "deletes">,
  durability: Batch["durability"],
): Promise<void> {
  const expect = [{ key: STORE_IDENTITY_KEY, value: null }];
  const outcome = await target.commit({ ...writes, expect, durability });
  if (outcome.kind === "unknown") throw outcome.cause;
  if (outcome.kind === "conflict")
    throw failure("store_held", {
      path: target.location,
      holder: "another process, which began a run there",
    });
}

/** The rows by which a leader would show: the same before and after a copy of which nobody wrote meanwhile. */
async function leadershipOf(source: Store): Promise<Uint8Array> {
  const rows = await source.getMany([COORDINATOR_LEASE_KEY, EPOCH_KEY]);
  return Buffer.concat(rows.map((row) => row ?? new Uint8Array(0)));
}

function unusable({ location: path }: Store, reason: string, advice: string): Error {
  return failure("store_unusable", { path, reason, advice });
}

function differs({ location: path }: Store, key: string): Error {
  return failure("store_corrupt", { path, key, reason: "it is not as it was copied" });
}
