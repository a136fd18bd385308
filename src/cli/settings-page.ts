// `rollout help settings`: each setting as a flag, with its default, its range and unit, and its key in the configuration file. The same
// settings are flags of many commands; a command's own page has those that people set every day.
import { SECTIONS, SETTING_KEYS, settingOf } from "../config/schema.ts";
import type { SettingKey } from "../config/schema.ts";
import { describeAllowed } from "../config/value.ts";
import { TOPICS } from "../observe/events.ts";

const INDENT = 6;

export function settingsPage(program: string, columns: number): string {
  const tables = ["", ...SECTIONS].map((section) => {
    const keys = SETTING_KEYS.filter((key) => (key.includes(".") ? key.split(".", 1)[0] : "") === section);
    return [section === "" ? "TOP OF THE FILE" : `[${section}]`, ...keys.map((key) => entryOf(key, columns))];
  });
  const head =
    "Each setting is a flag of the commands that read it, a key of the configuration file, and an environment variable " +
    "(ROLLOUT_, the key in upper case, _ for each dot). A flag goes before a variable, a variable before the file. " +
    `A flag that a command does not read is refused. \`${program} COMMAND --help --json\` lists the flags of a command.`;
  return [...wrapped(head, columns, ""), "", ...tables.flatMap((lines) => [...lines, ""])]
    .join("\n")
    .trimEnd();
}

/** Settings for a program, an object for each. */
export function settingObjects(): object[] {
  return SETTING_KEYS.map((key) => {
    const { flag, doc } = settingOf(key);
    return { setting: key, flag: `--${flag}`, default: defaultOf(key) ?? null, allowed: allowedOf(key), doc };
  });
}

function entryOf(key: SettingKey, columns: number): string {
  const { flag, doc } = settingOf(key);
  const indent = " ".repeat(INDENT);
  const facts = `default: ${defaultOf(key) ?? "none"}; allowed: ${allowedOf(key)}`;
  return [`  --${flag}  ${key}`, ...wrapped(facts, columns, indent), ...wrapped(doc, columns, indent)].join(
    "\n",
  );
}

function defaultOf(key: SettingKey): string | undefined {
  const setting = settingOf(key);
  const value = "default" in setting ? String(setting.default) : setting.derived;
  return value === undefined || value === "" ? undefined : value.replaceAll("`", "");
}

function allowedOf(key: SettingKey): string {
  return describeAllowed(settingOf(key), TOPICS).replaceAll('"', "");
}

function wrapped(text: string, columns: number, indent: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= columns)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`${indent}${word}`);
  }
  return lines;
}
