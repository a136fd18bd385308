// The formats of results by name: what stands at the head of a file, and the line of one result.
import type { Result } from "../../client/results.ts";
import { csvHeader, csvLine } from "./csv.ts";
import { jsonLine } from "./jsonl.ts";
import { openaiLine } from "./openai.ts";

export const FORMAT_NAMES = ["jsonl", "csv", "openai"] as const;
export type FormatName = (typeof FORMAT_NAMES)[number];

export interface Format {
  /** The first lines of each file, with their endings. */
  readonly header: string;
  /** One line, with its ending. */
  readonly line: (result: Result) => string;
}

/** Why `--json` does not go with them, in a sentence: lines on standard output are of one schema then. */
export function jsonRefusal(format: FormatName, output: string | undefined): string | undefined {
  return output === undefined && format !== "jsonl"
    ? "--json on standard output is --format jsonl"
    : undefined;
}

export function formatOf(name: FormatName, withInput: boolean): Format {
  switch (name) {
    case "jsonl":
      return { header: "", line: jsonLine };
    case "csv":
      return { header: csvHeader(withInput), line: (result) => csvLine(result, withInput) };
    case "openai":
      return { header: "", line: openaiLine };
  }
}
