// The only door to oclif. Its front page loads everything that it has, half as many modules again as a command needs, and
// every start of the program would pay for that.
import * as Args from "@oclif/core/args";
import * as Errors from "@oclif/core/errors";
import * as Flags from "@oclif/core/flags";

export { Command } from "@oclif/core/command";
export { Config } from "@oclif/core/config";
export { CommandHelp, Help } from "@oclif/core/help";
export { Args, Errors, Flags };
