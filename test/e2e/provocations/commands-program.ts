// Runs the built program again and again in this process, which takes a tenth of the time of a process for each. Standard input has the
// words of each as a line of JSON; standard output has its end in another, an `EndedCommand`.
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type * as Program from "../../../src/cli/main.ts";

export interface EndedCommand {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const { main } = (await import(`${ROOT}dist/src/cli/main.js`)) as typeof Program;
const print = process.stdout.write.bind(process.stdout);
const said = { stdout: "", stderr: "" };
let end = Promise.withResolvers<number>();

for (const name of ["stdout", "stderr"] as const)
  process[name].write = (chunk: string | Uint8Array, ...more: unknown[]) => {
    said[name] += Buffer.from(chunk).toString();
    const done = more.at(-1);
    if (typeof done === "function") (done as () => void)();
    return true;
  };
// Each command listens for its process alone, and ends it, as it thinks.
for (const shared of [process, process.stdout, process.stderr]) shared.setMaxListeners(0);
process.exit = ((code: number) => end.resolve(code)) as typeof process.exit;

for await (const line of createInterface({ input: process.stdin })) {
  Object.assign(said, { stdout: "", stderr: "" });
  end = Promise.withResolvers();
  void main(JSON.parse(line) as string[], { root: ROOT });
  const ended: EndedCommand = { code: await end.promise, ...said };
  print(`${JSON.stringify(ended)}\n`);
}
