// `rollout machines export`
import { charts } from "../../../machines/index.ts";
import { EXIT } from "../../base/error-table.ts";
import { failure } from "../../base/errors.ts";
import type { ExitCode } from "../../base/error-table.ts";
import { BaseCommand } from "../../cli/base-command.ts";
import { Args, Flags } from "../../cli/oclif.ts";
import { chartDiagram } from "../../cli/render/chart-diagram.ts";
import { nearestName } from "../../config/nearest.ts";
import { structureHash } from "../../runtime/chart-structure.ts";

type ChartName = keyof typeof charts;

export class MachinesExport extends BaseCommand {
  static override readonly summary = "Print a statechart as a diagram or as data.";
  static override readonly description =
    "`mermaid` is a state diagram that many viewers draw; `definition` is the chart as XState sees it, one JSON object, " +
    "which is also what --json prints.";
  static override readonly examples = [
    { description: "Draw one:", command: "<%= config.bin %> <%= command.id %> work-item" },
    {
      description: "All of them as data, one object a line:",
      command: "<%= config.bin %> <%= command.id %> --format definition",
    },
  ];
  static override readonly args = {
    name: Args.string({ description: "A machine, as `machines list` names it; all of them without." }),
  };
  static override readonly flags = {
    format: Flags.option({
      options: ["mermaid", "definition"] as const,
      default: "mermaid",
      summary: "How it is written.",
    })(),
  };

  override async run(): Promise<ExitCode> {
    const { args, flags } = await this.parse(MachinesExport);
    const names = args.name === undefined ? CHART_NAMES : [this.#known(args.name)];
    const objects = names.map((name) => {
      const { machine } = charts[name];
      return {
        name,
        version: machine.version,
        structure: structureHash(machine),
        definition: machine.definition,
      };
    });
    const asData = objects.map((object) => `${JSON.stringify(object)}\n`).join("");
    const asDiagrams = names
      .map(
        (name) => `%% ${name} ${charts[name].machine.version ?? ""}\n${chartDiagram(charts[name].machine)}`,
      )
      .join("\n");
    this.print(objects, flags.format === "definition" ? asData : asDiagrams);
    return EXIT.done;
  }

  #known(name: string): ChartName {
    const found = CHART_NAMES.find((known) => known === name);
    if (found !== undefined) return found;
    const guess = nearestName(name, CHART_NAMES);
    const hint = guess === undefined ? "" : `; did you mean ${guess}?`;
    throw failure("usage", {
      detail: `there is no machine ${name}${hint}`,
      command: this.fullName(),
    });
  }
}

const CHART_NAMES = Object.keys(charts) as readonly ChartName[];
