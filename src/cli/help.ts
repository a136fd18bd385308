// Help texts. The program's own page is ours: every command on one screen, in the order of a first session; the pages of
// commands and topics are oclif's.
import type { Command, Config } from "@oclif/core";
import { CommandHelp, Help } from "./oclif.ts";
import { EXIT } from "../base/error-row.ts";
import type { ExitCode } from "../base/error-row.ts";
// An entry of its own would cut what all commands share into pieces, and each piece is a file to load at every start.
import { settingObjects, settingsPage } from "./settings-page.ts";

const COLUMNS_MIN = 60;
const COLUMNS_MAX = 110;

/** The group of flags that are made from the table of settings. */
export const SETTINGS_GROUP = "SETTINGS";

/** `rollout help settings`. */
export const SETTINGS_PAGE = "settings";

/** Commands that one types first; the others follow by name. */
const FIRST = [
  ...["run", "init", "coordinator:run", "worker:run", "submit", "status", "results"],
  ...["explain", "logs", "retry", "pause", "resume", "cancel", "worker:list", "worker:drain", "events"],
];

export class RolloutHelp extends Help {
  protected override CommandHelpClass = FlagsHelp;

  constructor(config: Config) {
    super(config, {
      hideCommandSummaryInDescription: true,
      maxWidth: Math.min(Math.max(process.stdout.columns || COLUMNS_MAX, COLUMNS_MIN), COLUMNS_MAX),
      flagSortOrder: "none",
      // Twenty flags in the usage line hide the arguments; the section below has them all.
      docopts: false,
    });
  }

  /** Shows the page of a command or topic, or of the settings; of the program when the id is empty. */
  async show(id: string): Promise<void> {
    if (id === SETTINGS_PAGE) this.#showSettings();
    else await (id === "" ? this.showRootHelp() : this.showHelp([id]));
  }

  #showSettings(): void {
    this.log(settingsPage(this.config.bin, this.opts.maxWidth));
  }

  protected override async showRootHelp(): Promise<void> {
    const { bin, pjson } = this.config;
    const rank = (id: string): number => (FIRST.includes(id) ? FIRST.indexOf(id) : FIRST.length);
    const commands = this.sortedCommands.toSorted((one, other) => rank(one.id) - rank(other.id));
    const names = commands.map(({ id }) => `${bin} ${id.replaceAll(":", " ")}`);
    const columns = Math.max(...names.map((name) => name.length));
    const lines = commands.map(
      (command, at) => `  ${(names[at] ?? "").padEnd(columns)}  ${command.summary ?? ""}`,
    );
    this.log(
      [
        pjson["description"] ?? "",
        "",
        ...lines.map((line) => line.trimEnd()),
        "",
        `\`${bin} COMMAND --help\` explains a command, \`${bin} help settings\` lists every setting, \`${bin} --version\` prints the version.`,
      ].join("\n"),
    );
  }
}

/** The page of a command, with its flags in the order of their table. */
class FlagsHelp extends CommandHelp {
  /** Those with a short form first: oclif loses the indentation of a first line that has none. */
  protected override flags(flags: Command.Flag.Any[]): ReturnType<CommandHelp["flags"]> {
    return super.flags(
      flags.toSorted((one, other) => Number(one.char === undefined) - Number(other.char === undefined)),
    );
  }

  protected override arg(arg: Command.Arg.Any): string {
    return arg.multiple === true ? super.arg(arg).replace(/\]?$/, "…$&") : super.arg(arg);
  }

  /** Facts for scripts stand behind the flags. Settings that few people touch are counted: they are the same for every command. */
  protected override sections(): ReturnType<CommandHelp["sections"]> {
    const more = Object.values(this.command.flags).filter(({ helpGroup }) => helpGroup === SETTINGS_GROUP);
    const page = `\`${this.config.bin} help settings\``;
    const settings = `${more.length} more flags set what few runs need: ${page} lists every setting.`;
    const codes = exitCodesOf(this.command.id).map(([code, meaning]) => `${code}: ${meaning}.`);
    return super.sections().flatMap((section) => {
      if (section.header === "EXAMPLES")
        return [{ header: "EXIT CODES", generate: () => this.wrap(codes.join(" ")) }, section];
      if (section.header !== "DESCRIPTION" || more.length === 0) return [section];
      return [{ header: SETTINGS_GROUP, generate: () => this.wrap(settings) }, section];
    });
  }

  protected override groupFlags(flags: Command.Flag.Any[]): ReturnType<CommandHelp["groupFlags"]> {
    return super.groupFlags(flags.filter(({ helpGroup }) => helpGroup !== SETTINGS_GROUP));
  }
}

/**
 * Help for a program, an object for each command: for the one with this id, for all below that topic, or for every one when the
 * id is empty. For the page of the settings an object for each of them.
 */
export function helpObjects(config: Config, id: string): object[] {
  if (id === SETTINGS_PAGE) return settingObjects();
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

// Which exit codes a command may end with, by its name. Their meaning is the same everywhere.

/**
 * The meaning of an exit code for a script, for docs/errors.md and for the help of commands.
 * @internal
 */
export const MEANING_OF_EXIT: Readonly<Record<ExitCode, string>> = {
  [EXIT.done]: "done",
  [EXIT.itemsFailed]: "over, and some items failed or were cancelled",
  [EXIT.usage]: "wrong usage or configuration; nothing was started",
  [EXIT.unreachable]: "the coordinator is not reachable, or refused",
  [EXIT.interrupted]: "interrupted; the same command goes on",
  [EXIT.paused]: "paused, by a limit of the run or by an operator",
  [EXIT.storage]: "a database or a file cannot be used or written",
  [EXIT.bug]: "a bug in rollout",
};

const { done, itemsFailed, usage, unreachable, interrupted, paused, storage, bug } = EXIT;

/** The codes of commands that ask a coordinator something. */
const ASKING = [done, usage, unreachable, interrupted] as const;
/** The codes of commands that need no coordinator. */
const LOCAL = [done, usage] as const;

const CODES: Readonly<Record<string, readonly ExitCode[]>> = {
  run: [done, itemsFailed, usage, unreachable, interrupted, paused, storage],
  "actor:check": [done, itemsFailed, usage, unreachable, interrupted],
  "actor:send": [done, itemsFailed, usage, unreachable, interrupted],
  init: LOCAL,
  completion: LOCAL,
  doctor: [done, usage, unreachable, storage],
  "ca:issue": LOCAL,
  "coordinator:run": [done, usage, unreachable, interrupted, storage],
  "machines:export": LOCAL,
  "machines:list": LOCAL,
  results: [done, itemsFailed, usage, unreachable, interrupted, storage],
  events: [done, itemsFailed, usage, unreachable, interrupted],
  "release:status": [done, itemsFailed, usage, unreachable, interrupted, paused],
  "store:backup": [done, usage, unreachable, interrupted, storage],
  "store:copy": [done, usage, interrupted, storage],
  status: [done, itemsFailed, usage, unreachable, interrupted, paused],
  "worker:run": [done, usage, unreachable, interrupted, storage],
};

/** Codes of one command that mean something else than everywhere. */
const OWN: Readonly<Record<string, Readonly<Partial<Record<ExitCode, string>>>>> = {
  "actor:check": { [itemsFailed]: "an actor would park with this code" },
  "actor:send": { [itemsFailed]: "--timeout has ended --wait" },
  "release:status": {
    [itemsFailed]: "with --watch: the release was rolled back, aborted or ended",
    [paused]: "with --watch: the release is held",
  },
};

/**
 * For the command's help, in order. `commandId` has its words apart by colons or, as help has them, by spaces.
 * @internal
 */
export function exitCodesOf(commandId: string): readonly (readonly [code: string, meaning: string])[] {
  const id = commandId.replaceAll(" ", ":");
  return [...(CODES[id] ?? ASKING), bug].map(
    (code) => [String(code), OWN[id]?.[code] ?? MEANING_OF_EXIT[code]] as const,
  );
}
