// `node examples/images/make-inputs.ts`: draws the pictures of this example again. They are formulas, the same each time.
import { mkdirSync, writeFileSync } from "node:fs";
import { writePng } from "./png.ts";

type Colour = readonly [red: number, green: number, blue: number];

const WIDTH = 96;
const HEIGHT = 64;
const MANDELBROT_STEPS = 48;

/** From 0 to 1 across the picture and down it. */
const DRAWINGS: Readonly<Record<string, (x: number, y: number) => Colour>> = {
  dusk: (x, y) => [255 * (1 - Math.floor(16 * y) / 16), 96 + (64 * Math.floor(6 * x)) / 6, 60 + 195 * y],
  mandelbrot: (x, y) => {
    const steps = escapeSteps(3 * x - 2.2, 2 * y - 1);
    return [5 * steps, 3 * steps, steps === MANDELBROT_STEPS ? 0 : 120 + 2 * steps];
  },
  moire: (x, y) => {
    const rings = Math.sin(900 * ((x - 0.5) ** 2 + (y - 0.5) ** 2));
    return [127 + 127 * rings, 127 + 127 * Math.sin(40 * x), 90];
  },
  tiles: (x, y) => ((Math.floor(12 * x) + Math.floor(8 * y)) % 2 === 0 ? [230, 220, 200] : [30, 60, 90]),
};

/** After how many steps the point has left for good. */
function escapeSteps(real: number, imaginary: number): number {
  let [a, b, steps] = [0, 0, 0];
  while (steps < MANDELBROT_STEPS && a * a + b * b < 4) {
    [a, b] = [a * a - b * b + real, 2 * a * b + imaginary];
    steps++;
  }
  return steps;
}

mkdirSync(new URL("inputs/", import.meta.url), { recursive: true });
for (const [name, colourAt] of Object.entries(DRAWINGS)) {
  const pixels = new Uint8Array(WIDTH * HEIGHT * 3);
  for (let y = 0; y < HEIGHT; y++)
    for (let x = 0; x < WIDTH; x++) {
      const colour = colourAt(x / WIDTH, y / HEIGHT).map((value) => Math.min(255, Math.max(0, value)));
      pixels.set(colour, (y * WIDTH + x) * 3);
    }
  writeFileSync(
    new URL(`inputs/${name}.png`, import.meta.url),
    writePng({ width: WIDTH, height: HEIGHT, pixels }),
  );
}
