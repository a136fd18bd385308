// `rollout machines list`
import type { AnyStateNode } from "xstate";
import { charts } from "../../../machines/index.ts";
import { EXIT } from "../../base/error-table.ts";
import type { ExitCode } from "../../base/error-table.ts";
import { BaseCommand } from "../../cli/base-command.ts";
import type { Column } from "../../cli/render/table.ts";
import { renderTable } from "../../cli/render/table.ts";
import { structureHash } from "../../runtime/chart-structure.ts";

export class MachinesList extends BaseCommand {
  static override readonly summary = "Show the statecharts that this version runs.";
  static override readonly description =
    "A chart's version and structure stand in everything that is persisted by it: a store that was written by another " +
    "one is migrated or refused, never guessed at.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> --json",
  ];

  override async run(): Promise<ExitCode> {
    await this.parse(MachinesList);
    const machines = Object.entries(charts).map(([name, { machine }]) => ({
      name,
      version: machine.version ?? "",
      structure: structureHash(machine),
      states: statesOf(machine.root),
    }));
    this.print(machines, renderTable(COLUMNS, machines));
    return EXIT.done;
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
function statesOf(node: AnyStateNode): string[] {
  const inner = Object.values(node.states);
  return inner.length === 0 ? [node.path.join(".")] : inner.flatMap(statesOf);
}
