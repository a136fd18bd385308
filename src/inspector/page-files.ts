// The page as it was built: its three files, and a picture of each chart of the product.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ownMachines } from "../charts/named-machine.ts";
import { chartPicture } from "./chart-picture.ts";
import type { ChartPicture } from "./page-messages.ts";

export const PAGE_FILES = ["index.html", "page.js", "page.css"] as const;
export type PageFile = (typeof PAGE_FILES)[number];

/** Where `scripts/build.ts` puts them, in the folder of what is built. */
export const PAGE_FOLDER = "page";

/** Rejects when it was not built. */
export function pageFile(folder: string, name: PageFile): Promise<string> {
  return readFile(join(folder, name), "utf8");
}

/** One of the product's, drawn when it was built. Undefined when there is none. */
export async function builtChart(folder: string, name: string): Promise<ChartPicture | undefined> {
  if (!ownMachines().some((machine) => machine.name === name)) return undefined;
  return JSON.parse(await readFile(join(folder, "charts", `${name}.json`), "utf8")) as ChartPicture;
}

/**
 * All of the product's, drawn now: for the build.
 * @internal
 */
export function drawCharts(): Promise<readonly ChartPicture[]> {
  return Promise.all(ownMachines().map(({ name, model }) => chartPicture(name, model)));
}
