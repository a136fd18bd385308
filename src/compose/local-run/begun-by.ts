// The command that a local run was begun by, and where, in a file of its directory: other commands say how to go on with it.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { shellWords } from "../../cli/shell-words.ts";

export const BEGUN_BY_FILE = "command.json";
const VERSION = 1;

/** Undefined: a command that is not to be shown. */
export function begunByText(command: string | undefined): string {
  return `${JSON.stringify({ version: VERSION, workingDirectory: process.cwd(), command })}\n`;
}

/** The command as it is typed here, in backquotes; in other words where it was not written down, as for a program's own cluster. */
export async function begunBy(directory: string): Promise<string> {
  const kept = parse(await readFile(join(directory, BEGUN_BY_FILE), "utf8").catch(() => ""));
  if (kept === undefined) return "the command that began it";
  const { workingDirectory, command } = kept;
  const isHere = workingDirectory === process.cwd();
  return isHere ? `\`${command}\`` : `\`${command}\` in ${shellWords([workingDirectory])}`;
}

function parse(text: string): { readonly workingDirectory: string; readonly command: string } | undefined {
  try {
    const value = JSON.parse(text) as Readonly<Record<string, unknown>> | null;
    const { version, workingDirectory, command } = value ?? {};
    if (version !== VERSION || typeof workingDirectory !== "string" || typeof command !== "string")
      return undefined;
    return { workingDirectory, command };
  } catch {
    return undefined;
  }
}
