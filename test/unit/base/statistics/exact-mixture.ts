// The beta-binomial mixture in fractions of whole numbers, without a logarithm: for few observations it says exactly whether a rate is possible.

interface Fraction {
  readonly over: bigint;
  readonly under: bigint;
}

/** Γ(count + ½) / Γ(½) = 1/2 · 3/2 · 5/2 · … */
function halfFactorial(count: number): Fraction {
  let over = 1n;
  for (let at = 0; at < count; at++) over *= BigInt(2 * at + 1);
  return { over, under: 2n ** BigInt(count) };
}

function factorial(count: number): bigint {
  let product = 1n;
  for (let at = 2; at <= count; at++) product *= BigInt(at);
  return product;
}

/** Whether `rate` is possible after `k` of `n`: whether the mixture is less than 1/alpha times as likely. All three as whole millionths. */
export function isPossible(n: number, k: number, rateMillionths: number, alphaMillionths: number): boolean {
  const [bad, good] = [halfFactorial(k), halfFactorial(n - k)];
  const million = 1_000_000n;
  const rate = BigInt(rateMillionths);
  const mixture = { over: bad.over * good.over, under: bad.under * good.under * factorial(n) };
  const own = { over: rate ** BigInt(k) * (million - rate) ** BigInt(n - k), under: million ** BigInt(n) };
  // mixture < own / alpha
  return mixture.over * own.under * BigInt(alphaMillionths) < own.over * mixture.under * million;
}
