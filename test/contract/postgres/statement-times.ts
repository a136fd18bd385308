// How long a Postgres takes for the statements of a store, by its own log: read on from where it was read last.
import { closeSync, fstatSync, openSync, readSync } from "node:fs";

/** Settings of a server that notes each statement, with how long it took and without its values. */
export const NOTED: Readonly<Record<string, string>> = {
  log_min_duration_statement: "0",
  log_parameter_max_length: "0",
};

/** By what they begin with, after white space was taken together. */
const KINDS = {
  "window load": /^SELECT key, value FROM .*ORDER BY key/,
  "rows by key": /^SELECT (?:key, )?value FROM .*WHERE key = /,
  turn: /^WITH fence .*\.writers /,
  renewal: /^WITH fence /,
} as const;
export type StatementKind = keyof typeof KINDS;

const DURATION = /duration: ([\d.]+) ms {2}execute [^:]+: ([\s\S]*)/;

export class StatementTimes {
  readonly #file: string;
  #offset = 0;
  #rest = "";

  constructor(file: string) {
    this.#file = file;
  }

  /** Milliseconds of each since the last call. */
  take(): ReadonlyMap<StatementKind, readonly number[]> {
    const entries = `${this.#rest}${this.#readOn()}`.split(/\n(?=\S)/);
    // It may go on in the next piece.
    this.#rest = entries.pop() ?? "";
    const times = new Map<StatementKind, number[]>();
    for (const entry of entries) {
      const [, took, statement = ""] = DURATION.exec(entry) ?? [];
      const kind = kindOf(statement.replaceAll(/\s+/g, " ").trim());
      if (took !== undefined && kind !== undefined)
        times.set(kind, [...(times.get(kind) ?? []), Number(took)]);
    }
    return times;
  }

  #readOn(): string {
    const file = openSync(this.#file, "r");
    try {
      const buffer = Buffer.alloc(fstatSync(file).size - this.#offset);
      const read = readSync(file, buffer, 0, buffer.length, this.#offset);
      this.#offset += read;
      return buffer.toString("utf8", 0, read);
    } finally {
      closeSync(file);
    }
  }
}

function kindOf(statement: string): StatementKind | undefined {
  const kinds = Object.keys(KINDS) as StatementKind[];
  return kinds.find((kind) => KINDS[kind].test(statement));
}

export function medianOf(times: readonly number[]): number {
  return times.toSorted((one, other) => one - other)[Math.floor(times.length / 2)] ?? NaN;
}
