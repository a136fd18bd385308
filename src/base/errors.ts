// Failures that a user can meet, as values of the one table (error-table.ts). Nothing branches on their text.
import { ERRORS } from "./error-table.ts";
import type { ErrorRow } from "./error-row.ts";

export type ErrorCode = keyof typeof ERRORS;

type PlaceholderOf<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | PlaceholderOf<Rest>
  : never;
type ParamsOf<Code extends ErrorCode> = Exclude<
  PlaceholderOf<(typeof ERRORS)[Code]["message"]> | PlaceholderOf<(typeof ERRORS)[Code]["hint"]>,
  "config"
>;
export type ErrorParams<Code extends ErrorCode> = { readonly [Name in ParamsOf<Code>]: string | number };

/** An expected failure that ends a command or a request. `params` are the values of the row's message and hint. */
export class RolloutError extends Error {
  override readonly name = "RolloutError";
  readonly code: ErrorCode;
  readonly params: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, params: Readonly<Record<string, string | number>>, cause?: unknown) {
    const values = Object.fromEntries(
      Object.entries(params).map(([name, value]) => [name, oneLine(String(value))]),
    );
    super(fill(ERRORS[code].message, values), { cause });
    this.code = code;
    this.params = values;
  }

  get hint(): string {
    return this.hintWith("");
  }

  /** The hint for a user who has named a configuration: `configWords`, with a space before, go behind each command about it. */
  hintWith(configWords: string): string {
    return fill(this.row.hint, { ...this.params, config: configWords });
  }

  get row(): ErrorRow {
    return ERRORS[this.code];
  }
}

/** Makes an error of the table; the compiler demands exactly the values that the row names. */
export function failure<Code extends ErrorCode>(
  code: Code,
  params: ErrorParams<Code>,
  cause?: unknown,
): RolloutError {
  return new RolloutError(code, params, cause);
}

export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERRORS, text);
}

/** The errno name (`ENOSPC`) of a system error or of the first cause that has one. */
export function errnoOf(error: unknown): string | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    const code = codeOf(at);
    if (code !== undefined && /^E[A-Z0-9]+$/.test(code)) return code;
  }
  return undefined;
}

/** The code of an error of the system or of Node; undefined when it has none. */
export function codeOf(error: Error): string | undefined {
  return "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** For logs and for the value `reason`: one line, whatever was thrown. */
export function describeError(error: unknown): string {
  return oneLine(error instanceof Error ? error.message : String(error));
}

function fill(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}

function oneLine(text: string): string {
  return text.replace(/[\r\n]+\s*/g, " ");
}
