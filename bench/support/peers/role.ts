// The part of a process of `Staff`: what it says, and the items and results that all peers have.
import { once } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";
import { sleep, systemClock } from "../../../src/base/clock.ts";
import type { Asked, Said } from "./staff.ts";

/** Items that a worker has at once, at most. */
export const CONCURRENCY = 256;
/** How often a worker says how far it is. */
const TOLD_EVERY_MS = 5;

/** About 100 bytes of JSON. */
export function payloadOf(n: number): { readonly n: number; readonly pad: string } {
  return { n, pad: "x".repeat(76) };
}

/** Items go around the keys. */
export function keyOf(n: number, keys: number): string {
  return `k${n % keys}`;
}

/** About 50 bytes of JSON. */
export function resultOf(n: number): { readonly n: number; readonly answer: string } {
  return { n, answer: "y".repeat(28) };
}

/** A package that is installed in this directory, and no dependency of the project. */
export function installed(directory: string, name: string): unknown {
  return createRequire(join(directory, "package.json"))(name);
}

/** Enqueues when it is asked to, and counts what is kept in the end. */
export async function produce(
  enqueue: () => Promise<void>,
  countResults: () => Promise<number> = () => Promise.resolve(0),
): Promise<void> {
  say("ready");
  for (;;) {
    const [asked] = (await once(process, "message")) as [Asked];
    if (asked === "count") say({ kept: await countResults() });
    else {
      await enqueue();
      say("produced");
    }
  }
}

/** The worker is ready. Returns what counts results that are recorded. */
export function work(): (count?: number) => void {
  let [done, told] = [0, 0];
  const tell = async (): Promise<void> => {
    for (;;) {
      await sleep(systemClock, TOLD_EVERY_MS);
      if (done !== told) say({ done: (told = done) });
    }
  };
  void tell();
  say("ready");
  return (count = 1) => void (done += count);
}

/** Keeps so many calls under way, as long as there are any. */
export async function inParallel(calls: Iterable<() => Promise<unknown>>, atOnce: number): Promise<void> {
  const left = calls[Symbol.iterator]();
  const lane = async (): Promise<void> => {
    for (let next = left.next(); next.done !== true; next = left.next()) await next.value();
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}

function say(said: Said): void {
  process.send?.(said);
}
