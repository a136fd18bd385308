// Chance for campaigns of some billions of draws, more than the seeded source of the product repeats after (sfc32).

/** Uniform in [0, 1); the same seed draws the same values. */
export function longRandom(seed: number): () => number {
  let [a, b, c, counter] = [0, seed | 0, seed >> 16, 1];
  const draw = (): number => {
    const sum = (a + b + counter++) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    return (sum >>> 0) / 2 ** 32;
  };
  // The first draws still show the seed.
  for (let at = 0; at < 15; at++) draw();
  return draw;
}
