// Which version an item gets. A share of items is a fixed function of the ids of item and release: it changes with no retry, no steal and
// no restart, a larger share only adds, and two releases choose independently of each other. A number of workers is the same of their ids.
import { createHash } from "node:crypto";
import type { ReleaseWorker } from "./ports.ts";
import type { Version } from "./release.ts";

/** `none`: nobody judges it. */
export type Arm = "none" | "stable" | "candidate";

/** A worker's part in the current stage: the items that it is given. */
export type Desk =
  /** Items by their share. */
  | "by item"
  /** The candidate, and nothing else. */
  | "candidate"
  /** Stable items that are judged. */
  | "stable"
  /** Stable items that nobody judges. */
  | "none";

/** 32 bits of a release's id, for its arms. */
export function seedOf(release: string): number {
  return createHash("sha256").update(`rollout release 1\0${release}`).digest().readUInt32BE(0);
}

/** `share` is above 0, at most 1. Item ids are uniform, so four bytes of them, mixed with the seed, will do (murmur3's last step). */
export function isInShare(itemId: Uint8Array, seed: number, share: number): boolean {
  const [first = 0, second = 0, third = 0, fourth = 0] = itemId;
  let mixed = ((first << 24) | (second << 16) | (third << 8) | fourth) ^ seed;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0 < share * 2 ** 32;
}

/** The `count` of them whose hashes with the release are the smallest, and never all that are ready. */
export function chosenWorkers(
  release: string,
  able: readonly ReleaseWorker[],
  { count, ready }: { readonly count: number; readonly ready: number },
): ReadonlySet<string> {
  const ranked = able.map(({ id }) => ({
    id,
    rank: createHash("sha256").update(`${release}\0${id}`).digest("hex"),
  }));
  ranked.sort((one, other) => (one.rank < other.rank ? -1 : 1));
  return new Set(ranked.slice(0, Math.min(count, ready - 1)).map(({ id }) => id));
}

/** Whether the worker has exactly that version. One that does not say what its versions run has none by name. */
export function hasVersion(worker: ReleaseWorker, plugin: string, { version, digest }: Version): boolean {
  if (worker.lacks === version) return false;
  return worker.plugins.some(
    (one) => one.name === plugin && one.version === version && isSame(one.taskDigest, digest),
  );
}

/** Whether the worker's own version runs that task; one that does not say what it runs is taken at its word. */
export function ownRuns({ plugins }: ReleaseWorker, plugin: string, digest: Uint8Array): boolean {
  const own = plugins.find(({ name }) => name === plugin);
  return own !== undefined && (own.taskDigest === undefined || isSame(own.taskDigest, digest));
}

function isSame(one: Uint8Array | undefined, other: Uint8Array): boolean {
  return one !== undefined && Buffer.compare(one, other) === 0;
}
