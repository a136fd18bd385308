// `rollout machines export`
import { chartMermaid } from "../../charts/mermaid.ts";
import { ownMachines } from "../../charts/named-machine.ts";
import type { NamedMachine } from "../../charts/named-machine.ts";
import { chartSvg, ChartTooLarge } from "../../charts/svg.ts";
import { replaceFile } from "../../base/file-system.ts";
import { failure } from "../../base/errors.ts";
import { asUnwritable } from "../../base/system-reason.ts";
import { BaseCommand } from "../../cli/base-command.ts";
import { machineArgs, machineFlags, unknownMachine } from "../../cli/machine-flags.ts";
import { Flags } from "../../cli/oclif.ts";
import { loadUserMachine } from "../../compose/user-machine.ts";

const FORMATS = ["mermaid", "svg", "json"] as const;
type Format = (typeof FORMATS)[number];

export class MachinesExport extends BaseCommand {
  static override readonly summary = "Print a statechart as a diagram, a picture or data.";
  static override readonly description =
    "`mermaid` is a state diagram as text, which many viewers draw; `svg` a picture, for light and dark pages, that shows " +
    "actions and the rest on hovering; `json` is one object: states, transitions, guards, actions, actors and delays by " +
    "name. The machine's context is in none of them. Loading a file of yours executes it, as `node FILE` does.";
  static override readonly examples = [
    {
      description: "Draw one:",
      command: "<%= config.bin %> <%= command.id %> work-item --format svg -o work-item.svg",
    },
    {
      description: "All of them as data, one object a line:",
      command: "<%= config.bin %> <%= command.id %> --all --format json",
    },
    {
      description: "A machine of yours:",
      command: "<%= config.bin %> <%= command.id %> --plugin training.ts --format svg -o training.svg",
    },
  ];
  static override readonly args = machineArgs;
  static override readonly flags = {
    all: Flags.boolean({ summary: "All machines of this version, one after the other." }),
    ...machineFlags,
    format: Flags.option({
      options: FORMATS,
      summary: "How it is written: mermaid unless said, and json with --json.",
    })(),
    output: Flags.string({
      char: "o",
      summary: "Write to this file; without it, or as -, to standard output.",
      helpValue: "FILE",
    }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(MachinesExport);
    const machines = await this.#machines(args.name, flags.all, flags.plugin);
    const format = flags.format ?? (this.isForPrograms ? "json" : "mermaid");
    if (format === "svg" && machines.length > 1 && !this.isForPrograms)
      throw this.misuse("an SVG file holds one machine: name it");
    const objects = [];
    const texts = [];
    for (const machine of machines) {
      const { object, text } = await this.#exported(machine, format);
      objects.push(object);
      texts.push(text);
    }
    const text = texts.join(format === "mermaid" ? "\n" : "");
    const { output = "-" } = flags;
    if (output === "-") return this.print(objects, text);
    const content = this.isForPrograms
      ? objects.map((object) => `${JSON.stringify(object)}\n`).join("")
      : text;
    const how = { temporary: `${output}.${process.pid}.tmp`, synced: "nothing" } as const;
    await replaceFile(output, content, how).catch(asUnwritable(output));
  }

  async #machines(
    name: string | undefined,
    all: boolean,
    plugin: string | undefined,
  ): Promise<readonly NamedMachine[]> {
    const given = [name, plugin, all ? true : undefined].filter((one) => one !== undefined);
    if (given.length !== 1) throw this.misuse("name one machine, or give --all or --plugin FILE");
    if (plugin !== undefined) return [await loadUserMachine(plugin)];
    const found = ownMachines().filter((machine) => all || machine.name === name);
    if (name !== undefined && found.length === 0) throw this.misuse(unknownMachine(name));
    return found;
  }

  async #exported(machine: NamedMachine, format: Format): Promise<{ object: object; text: string }> {
    const { name, model, structure } = machine;
    const about = { name, version: model.version, structure };
    if (format === "json") {
      const object = { ...about, chart: model };
      return { object, text: `${JSON.stringify(object)}\n` };
    }
    const text =
      format === "svg"
        ? await this.#svg(machine)
        : `%% ${oneLine(`${name} ${model.version ?? ""}`)}\n${chartMermaid(model)}`;
    return { object: { ...about, format, text }, text };
  }

  async #svg({ name, model }: NamedMachine): Promise<string> {
    return chartSvg(model, { isAlone: true }).catch((error: unknown) => {
      if (!(error instanceof ChartTooLarge)) throw error;
      const advice = "take --format json or mermaid";
      throw failure("machine_unusable", { file: name, reason: error.message, advice });
    });
  }
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}
