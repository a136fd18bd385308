// Lets so many in at once, the others in order of arrival.

export type Gate = <T>(pass: () => Promise<T>) => Promise<T>;

export function gate(atOnce: number): Gate {
  const waiting: (() => void)[] = [];
  let inside = 0;
  return async (pass) => {
    if (inside < atOnce) inside++;
    // A place is handed over by the one who leaves, so that nobody comes between.
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await pass();
    } finally {
      const next = waiting.shift();
      if (next === undefined) inside--;
      else next();
    }
  };
}
