// `rollout machines list`
import type { ChartModel } from "../../charts/model.ts";
import { ownMachines } from "../../charts/named-machine.ts";
import { BaseCommand } from "../../cli/base-command.ts";
import { machineFlags } from "../../cli/machine-flags.ts";
import type { Column } from "../../cli/render/table.ts";
import { renderTable } from "../../cli/render/table.ts";
import { loadUserMachines } from "../../compose/user-machine.ts";

export class MachinesList extends BaseCommand {
  static override readonly summary = "Show the statecharts that this version runs.";
  static override readonly description =
    "A chart's version and structure stand in everything that is persisted by it: a store that was written by another " +
    "one is migrated or refused, never guessed at. With --plugin: the machines that a file of yours exports.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> --json",
    "<%= config.bin %> <%= command.id %> --plugin training.ts",
  ];
  static override readonly flags = machineFlags;

  override async run(): Promise<void> {
    const { flags } = await this.parse(MachinesList);
    const found = flags.plugin === undefined ? ownMachines() : await loadUserMachines(flags.plugin);
    const machines = found.map(({ name, model, structure }) => ({
      ...{ name, version: model.version ?? "", structure: structure ?? "", states: leavesOf(model) },
    }));
    this.print(machines, renderTable(COLUMNS, machines));
  }
}

interface MachineRow {
  readonly name: string;
  readonly version: string;
  readonly structure: string;
  readonly states: readonly string[];
}

const COLUMNS: readonly Column<MachineRow>[] = [
  { title: "machine", value: ({ name }) => name },
  { title: "version", value: ({ version }) => version },
  { title: "structure", value: ({ structure }) => structure },
  { title: "states", value: ({ states }) => states.join(" ") },
];

/** Dotted paths of the states that a snapshot can be in. */
function leavesOf({ states }: ChartModel): string[] {
  const around = new Set(states.map(({ parent }) => parent));
  return states.filter(({ id, kind }) => kind !== "history" && !around.has(id)).map(({ path }) => path);
}
