// The end of everything that can happen at this moment. Sockets, disks and timers are not waited for.

/** Resolves when every promise that can settle has settled: they do so before the loop's next turn. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const TURN_EVERY = 32;
let settled = 0;

/**
 * The same for a world that waits for nothing but promises, mostly without a turn of the loop, which costs more than what happens in a moment.
 * The second tick comes behind promises of ticks that others have asked for. Now and then there is a turn, so that a rejection that nobody
 * handles is noticed soon.
 */
export async function settlePromises(): Promise<void> {
  if (++settled % TURN_EVERY === 0) return settle();
  await tick();
  await tick();
}

function tick(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}
