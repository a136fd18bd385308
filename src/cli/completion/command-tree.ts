// The program's commands as a shell needs them to complete a line: the words that lead to each, and the flags that each
// takes. Read from the commands themselves, so nothing is listed twice.
import type { Command, Config } from "@oclif/core";
import { SETTING_KEYS, settingOf } from "../../config/schema.ts";

/** A value that a shell can offer, or the name of a file, or something only the user knows. */
export type Completed =
  | { readonly kind: "words"; readonly words: readonly string[] }
  | { readonly kind: "file" }
  /** Nothing can be offered. */
  | { readonly kind: "anything" };

export interface CompletedFlag {
  /** With its dashes: `--config`, `-w`. */
  readonly names: readonly string[];
  readonly summary: string;
  /** The value that follows it; undefined when none does. */
  readonly value: Completed | undefined;
}

/** A place in the line where something can be completed: the program, a topic or a command. */
export interface CompletedPlace {
  /** The words that lead here, `worker run`; empty for the program itself. */
  readonly path: string;
  /** Words that may follow: the next part of a command's name, or one of an argument's values. */
  readonly next: readonly { readonly word: string; readonly summary: string }[];
  readonly flags: readonly CompletedFlag[];
  /** Whether a file may stand here. */
  readonly takesFiles: boolean;
}

/** Every place, the program first, then by path. */
export function commandTree(config: Config): CompletedPlace[] {
  const commands = config.commands.filter(({ hidden }) => !hidden);
  const paths = new Set(["", ...commands.flatMap(({ id }) => startsOf(id.split(":")))]);
  return [...paths].sort().map((path) => placeAt(path, commands, config));
}

function placeAt(path: string, commands: readonly Command.Loadable[], config: Config): CompletedPlace {
  const command = commands.find(({ id }) => id.replaceAll(":", " ") === path);
  const words = new Map<string, string>();
  for (const { id, summary } of commands) {
    const name = id.split(":");
    const depth = path === "" ? 0 : path.split(" ").length;
    const word = name[depth];
    if (word === undefined || name.slice(0, depth).join(" ") !== path) continue;
    const topic = config.findTopic(name.slice(0, depth + 1).join(":"));
    words.set(word, name.length === depth + 1 ? (summary ?? "") : (topic?.description ?? ""));
  }
  const args = Object.values(command?.args ?? {});
  const values = args.flatMap(({ options }): readonly string[] => options ?? []);
  for (const word of values) words.set(word, "");
  return {
    path,
    next: [...words].sort().map(([word, summary]) => ({ word, summary })),
    flags: command === undefined ? [HELP, ...(path === "" ? [VERSION] : [])] : flagsOf(command),
    takesFiles: args.some(({ options }) => options === undefined),
  };
}

const HELP: CompletedFlag = { names: ["--help", "-h"], summary: "Explain it.", value: undefined };
const VERSION: CompletedFlag = {
  names: ["--version"],
  summary: "Say which version this is.",
  value: undefined,
};
function flagsOf(command: Command.Loadable): CompletedFlag[] {
  const flags = Object.values(command.flags).filter(({ hidden }) => !hidden);
  return [
    ...flags.map((flag): CompletedFlag => {
      const names = [`--${flag.name}`, ...(flag.char === undefined ? [] : [`-${flag.char}`])];
      return { names, summary: flag.summary ?? "", value: valueOf(flag) };
    }),
    HELP,
  ];
}

function valueOf(flag: Command.Flag.Any): Completed | undefined {
  if (flag.type === "boolean") return undefined;
  const words = flag.options ?? choicesOf(flag.name);
  if (words !== undefined) return { kind: "words", words };
  return /PATH|FILE|DIR/.test(String(flag.helpValue ?? "")) ? { kind: "file" } : { kind: "anything" };
}

/** Settings are checked with those of the file, so oclif does not know what they may be. */
function choicesOf(flag: string): readonly string[] | undefined {
  const setting = SETTING_KEYS.map(settingOf).find((one) => one.flag === flag);
  return setting?.kind === "choice" ? setting.choices : undefined;
}

/** `worker`, `worker run` of `worker run`. */
function startsOf(words: readonly string[]): string[] {
  return words.map((_, at) => words.slice(0, at + 1).join(" "));
}
