// The function that executes an item of this example: reads a picture, makes a small one of it, and says what its colours are.
import { readFile } from "node:fs/promises";
import { readPng, writePng } from "./png.ts";
import type { Picture } from "./png.ts";

interface Item {
  /** Relative to this folder. */
  readonly file: string;
}

interface Context {
  /** The parameters of images.toml. */
  readonly parameters: { readonly width?: number };
}

const WIDTH = 16;
/** Brightness in so many equal steps. */
const STEPS = 8;

export async function thumbnail({ file }: Item, { parameters }: Context): Promise<object> {
  const picture = readPng(await readFile(new URL(file, import.meta.url)));
  const small = shrink(picture, Math.min(parameters.width ?? WIDTH, picture.width));
  return {
    file,
    size: [picture.width, picture.height],
    average: averageOf(picture),
    brightness: histogramOf(picture),
    thumbnail: `data:image/png;base64,${writePng(small).toString("base64")}`,
  };
}

/** Each pixel of the small picture is the average of those that it stands for. */
function shrink(picture: Picture, width: number): Picture {
  const height = Math.max(1, Math.round((picture.height * width) / picture.width));
  const pixels = new Uint8Array(width * height * 3);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const left = Math.floor((x * picture.width) / width);
      const top = Math.floor((y * picture.height) / height);
      const right = Math.max(left + 1, Math.floor(((x + 1) * picture.width) / width));
      const bottom = Math.max(top + 1, Math.floor(((y + 1) * picture.height) / height));
      pixels.set(averageOf(picture, { left, top, right, bottom }), (y * width + x) * 3);
    }
  return { width, height, pixels };
}

interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

function averageOf(
  { width, height, pixels }: Picture,
  { left, top, right, bottom }: Box = { left: 0, top: 0, right: width, bottom: height },
): number[] {
  const sums = [0, 0, 0];
  for (let y = top; y < bottom; y++)
    for (let x = left; x < right; x++)
      for (let colour = 0; colour < 3; colour++)
        sums[colour] = (sums[colour] ?? 0) + (pixels[(y * width + x) * 3 + colour] ?? 0);
  return sums.map((sum) => Math.round(sum / ((right - left) * (bottom - top))));
}

function histogramOf({ pixels }: Picture): number[] {
  const counts = Array.from({ length: STEPS }, () => 0);
  for (let at = 0; at < pixels.length; at += 3) {
    const [red = 0, green = 0, blue = 0] = pixels.subarray(at, at + 3);
    const step = Math.floor(((0.299 * red + 0.587 * green + 0.114 * blue) * STEPS) / 256);
    counts[step] = (counts[step] ?? 0) + 1;
  }
  return counts;
}
