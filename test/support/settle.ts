// The end of everything that can happen at this moment. Sockets, disks and timers are not waited for.

/** Resolves when every promise that can settle has settled: they do so before the loop's next turn. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
