// The program from its first word to its exit code: finds the command, shows help, turns whatever went wrong into one line
// of the table of errors, and ends when everything has been written. oclif loads and parses commands; it neither prints
// errors nor ends the process here.
import type { Interfaces } from "@oclif/core";
import { assert } from "../base/assert.ts";
import { systemClock } from "../base/clock.ts";
import { EXIT } from "../base/error-row.ts";
import { RolloutError } from "../base/errors.ts";
import type { ExitCode } from "../base/error-row.ts";
import { closeInherited } from "../base/process-table.ts";
import { assertLimits } from "../config/limits.ts";
import { leadingWords, namedConfig, splitAtDashes, wantsHelp, wantsJson } from "./arguments.ts";
import { bugFrom, bugReport, endOnBugs, endOnFullOutput, endProcess } from "./exit.ts";
import { helpObjects, RolloutHelp, SETTINGS_PAGE } from "./help.ts";
import { Config } from "./oclif.ts";
import { errorObject } from "./render/error.ts";
import { STOP_AT_END_OF_INPUT } from "./signals.ts";
import { unknownCommand, unknownFlags, usageErrorFrom } from "./usage-error.ts";

/** Where the commands are, and what is to be known of them. */
type Installation = Extract<Interfaces.LoadOptions, { readonly root: string; readonly platform?: never }>;

/** Runs the program with these arguments and ends the process. `installation` says where commands are. */
export async function main(argv: readonly string[], installation: Installation): Promise<never> {
  // Before a command is loaded: with TLS comes a thread that reads CA certificates, by a descriptor that looks like an inherited one.
  if (splitAtDashes(argv).own.includes(`--${STOP_AT_END_OF_INPUT}`)) closeInherited();
  endOnBugs(argv);
  endOnFullOutput(argv);
  assertLimits();
  // There are no plugins of oclif's: it would look for them in the home directory, and warn of one that it cannot read.
  const config = await Config.load({ ...installation, userPlugins: false, devPlugins: false });
  const target = targetOf(config, argv);
  const code = await perform(config, target, argv).catch((error: unknown) => {
    return tellError(error, argv, fullName(config, target.id));
  });
  return await endProcess(code, systemClock);
}

interface Target {
  readonly kind: "command" | "help" | "version" | "unknown";
  /** The command or topic, in oclif's form (`worker:run`); empty for the program itself. */
  readonly id: string;
  /** Words that are left for the command to parse. */
  readonly rest: readonly string[];
}

function targetOf(config: Config, argv: readonly string[]): Target {
  const { own } = splitAtDashes(argv);
  const words = leadingWords(argv);
  if (words.length === 0 && own.includes("--version")) return { kind: "version", id: "", rest: [] };
  const asksForHelp = words[0] === "help" || wantsHelp(argv);
  const name = words[0] === "help" ? words.slice(1) : words;
  if (words[0] === "help" && name.join(" ") === SETTINGS_PAGE)
    return { kind: "help", id: SETTINGS_PAGE, rest: [] };
  const id = nameIn(config, name);
  const depth = id === "" ? 0 : id.split(":").length;
  const isCommand = config.findCommand(id) !== undefined;
  const rest = argv.slice(depth);
  if (isCommand && !asksForHelp) return { kind: "command", id, rest };
  const isWhole = depth === name.length;
  const isBare = own.every((word) => !word.startsWith("-") || word === "--json");
  return { kind: isCommand || (isWhole && (asksForHelp || isBare)) ? "help" : "unknown", id, rest };
}

/** The longest start of the words that names a command or a topic. */
function nameIn(config: Config, words: readonly string[]): string {
  for (let count = words.length; count > 0; count--) {
    const id = words.slice(0, count).join(":");
    if (config.findCommand(id) !== undefined || config.findTopic(id) !== undefined) return id;
  }
  return "";
}

async function perform(config: Config, target: Target, argv: readonly string[]): Promise<ExitCode> {
  switch (target.kind) {
    case "command":
      return exitCodeFrom(await config.runCommand(target.id, [...target.rest]));
    case "help":
      if (wantsJson(argv))
        for (const page of helpObjects(config, target.id)) process.stdout.write(`${JSON.stringify(page)}\n`);
      else await new RolloutHelp(config).show(target.id);
      return EXIT.done;
    case "version":
      await printVersion(config, argv);
      return EXIT.done;
    case "unknown":
      throw unknownTarget(config, target, argv);
  }
}

function exitCodeFrom(result: unknown): ExitCode {
  const found = Object.values(EXIT).find((code) => code === (result ?? EXIT.done));
  assert(found !== undefined, "a command returns its exit code, or nothing");
  return found;
}

function unknownTarget(config: Config, target: Target, argv: readonly string[]): RolloutError {
  const all = leadingWords(argv);
  const words = all[0] === "help" ? all.slice(1) : all;
  const known = target.id === "" ? 0 : target.id.split(":").length;
  if (words.length > known) return unknownCommand(words, known, config.commandIDs.map(spaced), config.bin);
  const flags = splitAtDashes(target.rest).own.filter((word) => word.startsWith("-") && word !== "--json");
  return unknownFlags(flags, ["--help", "--version"], fullName(config, target.id));
}

async function printVersion(config: Config, argv: readonly string[]): Promise<void> {
  const { charts } = await import("../../machines/index.ts");
  const { version } = config;
  const node = process.versions.node;
  const machines = Object.fromEntries(
    Object.entries(charts).map(([name, { machine }]) => [name, machine.version ?? ""]),
  );
  const named = Object.entries(machines).map(([name, chart]) => `${name} ${chart}`);
  const text = wantsJson(argv)
    ? JSON.stringify({ version, node, machines })
    : `${config.bin} ${version} (Node ${node})\nmachines: ${named.join(", ")}`;
  process.stdout.write(`${text}\n`);
}

function tellError(error: unknown, argv: readonly string[], command: string): ExitCode {
  const known = error instanceof RolloutError ? error : (usageErrorFrom(error, command) ?? bugFrom(error));
  if (wantsJson(argv)) process.stdout.write(`${JSON.stringify(errorObject(known, namedConfig(argv)))}\n`);
  process.stderr.write(bugReport(known, argv));
  return known.row.exit;
}

function spaced(id: string): string {
  return id.replaceAll(":", " ");
}

function fullName(config: Config, id: string): string {
  return `${config.bin} ${spaced(id)}`.trim();
}
