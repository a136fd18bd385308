// A machine with what is known of it: one of the program's own, or a user's.
import type { AnyStateMachine } from "xstate";
import { charts } from "../../machines/index.ts";
import { structureHash } from "../runtime/chart-structure.ts";
import type { CreateActor } from "../runtime/transition.ts";
import type { ChartModel } from "./model.ts";
import { readMachine } from "./read-machine.ts";

export interface NamedMachine {
  readonly name: string;
  readonly machine: AnyStateMachine;
  readonly model: ChartModel;
  /** As it stands in snapshots of it; a user's has none. */
  readonly structure: string | null;
  /** From the copy of XState that made the machine, where that is not ours. */
  readonly createActor?: CreateActor;
}

export const OWN_NAMES: readonly string[] = Object.keys(charts);

/** The program's own, in the order of the registry. */
export function ownMachines(): NamedMachine[] {
  return Object.entries(charts).map(([name, { machine }]) => ({
    ...{ name, machine, model: readMachine(machine), structure: structureHash(machine) },
  }));
}
