// Help for a program: what `--json` prints in place of a page, an object for each command that the page is about.
import type { Command, Config } from "@oclif/core";
import { exitCodesOf } from "./exit-codes.ts";

/** Objects for the command with this id, or for all commands below that topic; for every command when the id is empty. */
export function helpObjects(config: Config, id: string): object[] {
  return config.commands
    .filter((command) => !command.hidden && isBelow(command.id, id))
    .toSorted((one, other) => (one.id < other.id ? -1 : 1))
    .map((command) => helpObject(command, config.bin));
}

function helpObject({ id, summary, description, args, flags }: Command.Loadable, program: string): object {
  return {
    command: `${program} ${id.replaceAll(":", " ")}`,
    summary: summary ?? "",
    description: description ?? "",
    arguments: Object.values(args).map((arg) => ({
      name: arg.name,
      required: arg.required === true,
      multiple: arg.multiple === true,
      description: arg.description ?? "",
      options: arg.options ?? null,
    })),
    flags: Object.values(flags)
      .filter(({ hidden }) => hidden !== true)
      .map((flag) => ({
        name: `--${flag.name}`,
        char: flag.char === undefined ? null : `-${flag.char}`,
        takes_value: flag.type === "option",
        required: flag.required === true,
        summary: flag.summary ?? "",
        options: (flag.type === "option" ? flag.options : undefined) ?? null,
      })),
    exit_codes: Object.fromEntries(exitCodesOf(id)),
  };
}

function isBelow(id: string, topic: string): boolean {
  return topic === "" || id === topic || id.startsWith(`${topic}:`);
}
