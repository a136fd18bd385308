// The end of everything that can happen at this moment. What waits for a socket, a disk or a timer is not waited for.

/** Resolves when every promise that can settle has settled: they do so before the loop's next turn. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
