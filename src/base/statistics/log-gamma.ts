// The logarithm of the gamma function, for positive numbers, by Stirling's series.

/** From here on the series below is exact to twelve digits. */
const STIRLING_FROM = 10;
const HALF_LOG_TWO_PI = Math.log(2 * Math.PI) / 2;

export function logGamma(value: number): number {
  let product = 1;
  let shifted = value;
  while (shifted < STIRLING_FROM) product *= shifted++;
  const inverse = 1 / shifted;
  const square = inverse * inverse;
  const series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1_260 - square / 1_680)));
  return (shifted - 0.5) * Math.log(shifted) - shifted + HALF_LOG_TWO_PI + series - Math.log(product);
}
