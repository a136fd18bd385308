// The only door to oclif. Its front page loads everything that it has, half as many modules again as a command needs, and
// every start of the program would pay for that.
import * as Args from "@oclif/core/args";
import * as Errors from "@oclif/core/errors";
import * as ParserFlags from "@oclif/core/flags";

export { Command } from "@oclif/core/command";
export { Config } from "@oclif/core/config";
export { CommandHelp, Help } from "@oclif/core/help";
export { Args, Errors };

/** The fault of a value, in the words of a message; the parser wraps the text of whatever is thrown in more. */
export class FlagValueError extends Errors.CLIError {
  readonly detail: string;

  constructor(detail: string) {
    super(detail);
    this.detail = detail;
  }
}

/** A flag whose value is a whole number. The refusal of the parser's own speaks of parsing; ours says what it takes. */
const integer: typeof ParserFlags.integer = ParserFlags.custom<number, { max?: number; min?: number }>({
  parse: async (input, _context, { name, min, max }) => {
    const value = /^-?\d{1,15}$/.test(input) ? Number(input) : undefined;
    const isAllowed = value !== undefined && value >= (min ?? -Infinity) && value <= (max ?? Infinity);
    if (isAllowed) return value;
    throw new FlagValueError(`--${name} takes a whole number${rangeOf(min, max)}, not ${input}`);
  },
});

/** Those of the parser, with another `integer`. */
export const Flags = { ...ParserFlags, integer };

function rangeOf(min: number | undefined, max: number | undefined): string {
  if (min !== undefined && max !== undefined) return ` from ${min} to ${max}`;
  if (min !== undefined) return ` from ${min}`;
  return max === undefined ? "" : ` up to ${max}`;
}
