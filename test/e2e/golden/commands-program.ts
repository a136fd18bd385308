// Runs commands of the built program one after another in this process, which takes a tenth of the time of a process for each.
// Standard input has them as JSON, `CommandLine[]`; standard output then has `Recorded[]`.
import { text } from "node:stream/consumers";
import { Config } from "@oclif/core/config";
import { repositoryFile } from "../../../scripts/generate-docs.ts";
import { sleep, systemClock } from "../../../src/base/clock.ts";

export interface CommandLine {
  /** As oclif has it: `worker:list`. */
  readonly id: string;
  readonly words: readonly string[];
  /** The kind of object that it prints, where the command has several. */
  readonly kind?: string;
  /** It is run again until its output matches this expression. */
  readonly until?: string;
}

export interface Recorded {
  readonly id: string;
  readonly kind?: string;
  /** The row of the table of errors that it ended with. */
  readonly error?: string;
  readonly stdout: string;
}

const BETWEEN_MS = 50;
/** Longer than anything takes on a busy machine. */
const PATIENCE_MS = 60_000;

let stdout = "";
const print = process.stdout.write.bind(process.stdout);
process.stdout.write = (chunk: string | Uint8Array, ...more: unknown[]) => {
  stdout += Buffer.from(chunk).toString();
  const done = more.at(-1);
  if (typeof done === "function") (done as () => void)();
  return true;
};

const config = await Config.load({ root: repositoryFile(""), userPlugins: false, devPlugins: false });
const recorded: Recorded[] = [];
for (const line of JSON.parse(await text(process.stdin)) as readonly CommandLine[]) {
  const deadlineMs = systemClock.monotonicMs() + PATIENCE_MS;
  let found = await run(line);
  while (line.until !== undefined && !new RegExp(line.until).test(found.stdout)) {
    if (systemClock.monotonicMs() > deadlineMs) throw new Error(`never ${line.until}: ${found.stdout}`);
    await sleep(systemClock, BETWEEN_MS);
    found = await run(line);
  }
  recorded.push(found);
}
print(JSON.stringify(recorded), () => process.exit(0));

async function run({ words, until: _, ...command }: CommandLine): Promise<Recorded> {
  stdout = "";
  try {
    await config.runCommand(command.id, [...words]);
    return { ...command, stdout };
  } catch (error) {
    return { ...command, stdout, error: String((error as { readonly code?: unknown }).code ?? error) };
  }
}
