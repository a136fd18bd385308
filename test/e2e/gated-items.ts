// Items of which a test says when they may end, and which fail as long as it wants: a function for the backend `module`, in the
// directory of the test. Each execution leaves a line in a journal before it does anything.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Every value is an item of its own. */
export interface GatedItem {
  readonly n: number;
  /** It ends when this file is there. */
  readonly gate?: string;
  /** It takes so long. */
  readonly ms?: number;
  /** It fails until this file is there. */
  readonly cure?: string;
}

const FUNCTION = `
import { appendFileSync, existsSync } from "node:fs";
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export default async ({ n, gate, cure, ms = 0 }, { itemId, attempt, signal, env }) => {
  appendFileSync("journal", [itemId, attempt, env.ROLLOUT_WORKER_ID, process.pid].join(" ") + "\\n");
  await pause(ms);
  while (gate !== undefined && !existsSync(gate) && !signal.aborted) await pause(20);
  if (cure !== undefined && !existsSync(cure)) throw new Error("it is not cured");
  return n;
};
`;
const MANIFEST = `name = "gated"
version = "1"
backend = "module"
[module]
module = "gated.mjs"
`;

/** For `worker.plugins` of a cluster in this directory, whose journal is the file `journal`. */
export const GATED_MANIFEST = "./gated.toml";

export async function writeGatedFunction(directory: string): Promise<void> {
  await writeFile(join(directory, "gated.mjs"), FUNCTION);
  await writeFile(join(directory, GATED_MANIFEST), MANIFEST);
}

/** Those from `from` to before `to`. */
export function gatedItems(from: number, to: number, more: Omit<GatedItem, "n"> = {}): GatedItem[] {
  return Array.from({ length: to - from }, (_, at) => ({ n: from + at, ...more }));
}
