// The text of a configuration file as settings with their lines, so that a refusal can name the place.
import { readFile, stat } from "node:fs/promises";
import { TomlError, parse } from "smol-toml";
import { failure, RolloutError } from "../base/errors.ts";
import { systemReason } from "../base/system-reason.ts";
import { demandTrusted } from "../base/trusted-place.ts";
import { LIMITS } from "./limits.ts";

export interface FileSetting {
  /** `section.name`, `list[1].name`, or a bare name at the top. A table's own key when it stands where no table is known. */
  readonly key: string;
  readonly value: unknown;
  /** `file:line`; the file alone when the line was not found. */
  readonly source: string;
}

const DEPTH_MAX = 8;

/** The text of a file that this program obeys. Throws not_trusted, and the row of that code when it cannot be read or is too large. */
export async function readTrustedText(
  file: string,
  code: "config_unreadable" | "manifest_unreadable" | "release_spec_unreadable",
): Promise<string> {
  await demandTrusted(file);
  try {
    const { size } = await stat(file);
    if (size <= LIMITS.configFileBytes) return await readFile(file, "utf8");
    throw failure(code, { file, reason: `it has ${size} bytes, and ${LIMITS.configFileBytes} are allowed` });
  } catch (error) {
    if (error instanceof RolloutError) throw error;
    throw failure(code, { file, reason: systemReason(error) }, error);
  }
}

/** Every value of the file, tables and lists of tables opened where they are known. Throws `config_syntax` with line and column. */
export function parseConfigText(
  file: string,
  text: string,
  isSection: (name: string) => boolean,
  isList: (name: string) => boolean = () => false,
): FileSetting[] {
  const lines = linesOfKeys(text);
  const settings: FileSetting[] = [];
  const add = (key: string, value: unknown): void => {
    const line = lines.get(key);
    settings.push({ key, value, source: line === undefined ? file : `${file}:${line}` });
  };
  const addTable = (name: string, table: Readonly<Record<string, unknown>>): void => {
    for (const [inner, innerValue] of Object.entries(table)) add(`${name}.${inner}`, innerValue);
  };
  for (const [name, value] of Object.entries(parseToml(file, text))) {
    if (isSection(name) && isTable(value)) {
      addTable(name, value);
    } else if (isList(name) && isTables(value)) {
      value.forEach((table, index) => {
        // One that says nothing is there too.
        add(`${name}[${index + 1}]`, table);
        addTable(`${name}[${index + 1}]`, table);
      });
    } else {
      add(name, value);
    }
  }
  return settings;
}

function parseToml(file: string, text: string): Readonly<Record<string, unknown>> {
  try {
    return parse(text, { unsafeKeyBehaviour: "throw", maxDepth: DEPTH_MAX });
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const [firstLine = ""] = error.message.split("\n", 1);
    const reason = firstLine.replace("Invalid TOML document: ", "");
    throw failure("config_syntax", { file, line: error.line, column: error.column, reason }, error);
  }
}

function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

function isTables(value: unknown): value is readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) && value.every(isTable);
}

/**
 * Where each key stands, by a look at the text: the parser does not say. Knows `[table]`, `[[list]]`, `key =` and `table.key =`, which
 * is how configuration is written; whatever is written otherwise has no line, and the file alone is named.
 */
function linesOfKeys(text: string): ReadonlyMap<string, number> {
  const lines = new Map<string, number>();
  const note = (key: string, line: number): void => {
    if (!lines.has(key)) lines.set(key, line);
  };
  const lengths = new Map<string, number>();
  let table = "";
  text.split("\n").forEach((line, index) => {
    const list = /^\s*\[\[\s*([\w.-]+)\s*\]\]/.exec(line)?.[1];
    if (list !== undefined) {
      const length = (lengths.get(list) ?? 0) + 1;
      lengths.set(list, length);
      table = `${list}[${length}].`;
      note(list, index + 1);
      note(`${list}[${length}]`, index + 1);
    }
    const header = /^\s*\[\s*([\w.-]+)\s*\]/.exec(line)?.[1];
    if (header !== undefined) {
      table = `${header}.`;
      note(header, index + 1);
    }
    const key = /^\s*([\w.-]+)\s*=/.exec(line)?.[1];
    if (key !== undefined) note(`${table}${key}`, index + 1);
  });
  return lines;
}
