// The machine that a command is about: one of the program's own, or a user's.
import { OWN_NAMES } from "../charts/named-machine.ts";
import { nearestName } from "../config/nearest.ts";
import { Args, Flags } from "./oclif.ts";

export const machineArgs = {
  name: Args.string({ description: "A machine, as `rollout machines list` names it.", ignoreStdin: true }),
};

export const machineFlags = {
  plugin: Flags.string({
    summary:
      "A machine of yours: the JavaScript or TypeScript file that exports it, with #NAME where it exports several, or a plugin's manifest.",
    helpValue: "FILE",
  }),
};

/** For a machine that is none of the program's own. */
export function unknownMachine(name: string): string {
  const guess = nearestName(name, OWN_NAMES);
  return `there is no machine ${name}${guess === undefined ? "" : `; did you mean ${guess}?`}`;
}
