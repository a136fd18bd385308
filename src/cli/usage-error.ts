// The words of the command line parser as a row of the table of errors: one line, without its help text.
import { failure } from "../base/errors.ts";
import type { RolloutError } from "../base/errors.ts";
import { nearestName } from "../config/nearest.ts";
import { Errors, FlagValueError } from "./oclif.ts";

/** The parser's complaint about how `command` was called; undefined when `error` is none. */
export function usageErrorFrom(error: unknown, command: string): RolloutError | undefined {
  if (!(error instanceof Errors.CLIError)) return undefined;
  return failure("usage", { detail: detailOf(error), command }, error);
}

/** For words that name no command. `known` of them name a topic; `commands` are the names that are. */
export function unknownCommand(
  words: readonly string[],
  known: number,
  commands: readonly string[],
  program: string,
): RolloutError {
  const unknown = words.slice(0, known + 1).join(" ");
  const guesses = words.map((_, at) => nearestName(words.slice(0, at + 1).join(" "), commands));
  const nearest = guesses.findLast((guess) => guess !== undefined);
  const guess = nearest === undefined ? "" : `, did you mean \`${program} ${nearest}\`?`;
  return failure("usage", { detail: `there is no command ${unknown}${guess}`, command: program });
}

export function unknownFlags(
  flags: readonly string[],
  known: readonly string[],
  command: string,
): RolloutError {
  return failure("usage", { detail: unknownFlagsDetail(flags, known), command });
}

function detailOf(error: Errors.CLIError): string {
  if (error instanceof FlagValueError) return error.detail;
  const flags = stringsAt(error, "flags");
  if (flags !== undefined) return unknownFlagsDetail(flags, knownFlags(error));
  const unexpected = stringsAt(error, "args");
  if (unexpected !== undefined) return `unexpected argument ${unexpected.join(" ")}`;
  const missing = namesAt(error, "args");
  if (missing !== undefined) {
    const names = missing.map((name) => name.toUpperCase());
    return `missing argument${names.length === 1 ? "" : "s"} ${names.join(" and ")}`;
  }
  const required = missingFlags(error);
  if (required.length > 0) return `missing flag ${required.join(" ")}`;
  const alone = flagAlone(error);
  if (alone !== undefined) return `--${alone.name} goes with --${alone.with}`;
  return plainText(error.message);
}

/** Flags that have to be given and were not. */
function missingFlags(error: object): string[] {
  const parse = valueAt(error, "parse");
  const given = valueAt(valueAt(parse, "output"), "flags");
  const flags = valueAt(valueAt(parse, "input"), "flags") ?? {};
  const isMissing = ([name, flag]: [string, unknown]): boolean =>
    valueAt(flag, "required") === true && valueAt(given, name) === undefined;
  return Object.entries(flags)
    .filter(isMissing)
    .map(([name]) => `--${name}`);
}

/** A flag that was given without the one that it goes with. */
function flagAlone(error: object): { readonly name: string; readonly with: string } | undefined {
  const parse = valueAt(error, "parse");
  const given = valueAt(valueAt(parse, "output"), "flags");
  const flags = valueAt(valueAt(parse, "input"), "flags") ?? {};
  for (const [name, flag] of Object.entries(flags)) {
    const absent = stringsAt(flag, "dependsOn")?.find((other) => valueAt(given, other) === undefined);
    if (valueAt(given, name) !== undefined && absent !== undefined) return { name, with: absent };
  }
  return undefined;
}

function unknownFlagsDetail(flags: readonly string[], known: readonly string[]): string {
  const [flag = ""] = flags;
  const nearest = nearestName(flag, known);
  const guess = nearest === undefined ? "" : `, did you mean ${nearest}?`;
  return `unknown flag ${flags.join(" ")}${guess}`;
}

/** The parser's text for everything else, without colours, headings and the advice that our own hint gives. */
function plainText(message: string): string {
  return message
    .split("\n")
    .map((line) => line.replace(/\u001b\[[\d;]*m/g, "").trim())
    .filter((line) => line !== "" && !/^(See more help|The following errors? occurred)/.test(line))
    .join(": ");
}

function valueAt(object: unknown, name: string): unknown {
  return typeof object === "object" && object !== null
    ? Object.getOwnPropertyDescriptor(object, name)?.value
    : undefined;
}

function listAt(object: unknown, name: string): readonly unknown[] | undefined {
  const value = valueAt(object, name);
  return Array.isArray(value) ? value : undefined;
}

function stringsAt(object: unknown, name: string): string[] | undefined {
  const list = listAt(object, name);
  const texts = list?.filter((entry) => typeof entry === "string");
  return texts?.length === list?.length ? texts : undefined;
}

function namesAt(error: object, name: string): string[] | undefined {
  return listAt(error, name)?.map((entry) => String(valueAt(entry, "name")));
}

function knownFlags(error: object): string[] {
  const flags = valueAt(valueAt(valueAt(error, "parse"), "input"), "flags");
  return Object.keys(flags ?? {}).map((name) => `--${name}`);
}
