// Two that are compared in turn, in both directions: what the machine does meanwhile falls on both alike.

/** Pairs of what both have yielded, next to each other in time. */
export async function alternate<Found>(
  pairs: number,
  one: () => Promise<Found>,
  other: () => Promise<Found>,
): Promise<readonly { readonly one: Found; readonly other: Found }[]> {
  const found: { one: Found; other: Found }[] = [];
  for (let pair = 0; pair < pairs; pair++) {
    if (pair % 2 === 0) found.push({ one: await one(), other: await other() });
    else {
      const second = await other();
      found.push({ one: await one(), other: second });
    }
  }
  return found;
}

/** NaN of nothing. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const [below, above] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return ((below ?? NaN) + (above ?? NaN)) / 2;
}
