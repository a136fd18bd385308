// `rollout machines export`
import { actorPlace } from "../../base/actor-address.ts";
import { systemClock } from "../../base/clock.ts";
import { litStates } from "../../charts/lit.ts";
import { chartMermaid } from "../../charts/mermaid.ts";
import { ownMachines } from "../../charts/named-machine.ts";
import type { NamedMachine } from "../../charts/named-machine.ts";
import { chartSvg, ChartTooLarge } from "../../charts/svg.ts";
import { replaceFile } from "../../base/file-system.ts";
import { failure } from "../../base/errors.ts";
import { asUnwritable } from "../../base/system-reason.ts";
import { machineArgs, machineFlags, unknownMachine } from "../../cli/machine-flags.ts";
import { Flags } from "../../cli/oclif.ts";
import { configFlagsFor } from "../../cli/setting-flags.ts";
import { untilSeenEnough } from "../../cli/signals.ts";
import { PatientReader } from "../../cli/watch.ts";
import { litCharts } from "../../compose/actor-charts.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";
import { loadUserMachine } from "../../compose/user-machine.ts";

const FORMATS = ["mermaid", "svg", "json"] as const;
type Format = (typeof FORMATS)[number];

/** The actor whose state is lit. */
interface Lit {
  readonly actor: string;
  /** Null while it has none. */
  readonly value: unknown;
}

export class MachinesExport extends OperatorCommand {
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
      description: "A durable actor's, with the state that it is in lit, drawn anew whenever it moves:",
      command:
        "<%= config.bin %> <%= command.id %> --plugin order.toml --actor order/17 --format svg -o order.svg --watch",
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
      summary: "The format; default mermaid, with --json json.",
    })(),
    actor: Flags.string({
      summary:
        "With --plugin: light the state that this actor of the run is in; of one within another the chart is its own.",
      helpValue: "TYPE/ID",
      dependsOn: ["plugin"],
    }),
    watch: Flags.boolean({
      char: "w",
      summary: "With --actor: write it again whenever the actor moves, until the run is over or Ctrl-C.",
      dependsOn: ["actor"],
    }),
    ...pickConfig(),
    output: Flags.string({
      char: "o",
      summary: "Write to this file; without it, or as -, to standard output.",
      helpValue: "FILE",
    }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(MachinesExport);
    const { actor } = flags;
    const plugin = actor === undefined ? flags.plugin : this.#pluginOf(actor, flags.plugin ?? "");
    const machines = await this.#machines(args.name, flags.all, plugin);
    const format = flags.format ?? (this.isForPrograms ? "json" : "mermaid");
    if (format === "svg" && machines.length > 1 && !this.isForPrograms)
      throw this.misuse("an SVG file holds one machine: name it");
    const { output = "-" } = flags;
    if (actor === undefined) return this.#write(machines, { format, output });
    const enough = untilSeenEnough(this.argv);
    const reader = new PatientReader((sentence) => this.tell(sentence));
    await this.followRun({ config: flags.config }, enough, async (client) => {
      const [type] = machines;
      if (type === undefined) return;
      const charts = litCharts(client, {
        ...{ actor, type, clock: systemClock, isOnce: !flags.watch, signal: enough.signal },
        read: (reading) => reader.read(reading),
      });
      for await (const { machine, value } of charts)
        await this.#write([machine], { format, output, lit: { actor, value } });
    });
  }

  /** The type is the export, where the manifest has several. */
  #pluginOf(actor: string, plugin: string): string {
    const place = actorPlace(actor);
    if (place === undefined) throw this.misuse(`--actor takes TYPE/ID, or TYPE/ID/CHILD, not ${actor}`);
    return plugin.includes("#") ? plugin : `${plugin}#${place.type}`;
  }

  async #write(
    machines: readonly NamedMachine[],
    { format, output, lit }: { readonly format: Format; readonly output: string; readonly lit?: Lit },
  ): Promise<void> {
    const objects = [];
    const texts = [];
    for (const machine of machines) {
      const { object, text } = await this.#exported(machine, format, lit);
      objects.push(object);
      texts.push(text);
    }
    const text = texts.join(format === "mermaid" ? "\n" : "");
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

  async #exported(
    machine: NamedMachine,
    format: Format,
    actor: Lit | undefined,
  ): Promise<{ object: object; text: string }> {
    const { name, model, structure } = machine;
    const lit = actor && litStates(model, actor.value);
    const about = {
      name,
      version: model.version,
      structure,
      ...(actor && lit && { ...actor, lit: [...lit] }),
    };
    if (format === "json") {
      const object = { ...about, chart: model };
      return { object, text: `${JSON.stringify(object)}\n` };
    }
    const text =
      format === "svg"
        ? await this.#svg(machine, lit)
        : `%% ${oneLine(`${name} ${model.version ?? ""}`)}\n${chartMermaid(model, lit)}`;
    return { object: { ...about, format, text }, text };
  }

  async #svg({ name, model }: NamedMachine, lit: ReadonlySet<string> | undefined): Promise<string> {
    return chartSvg(model, { isAlone: true, ...(lit && { lit }) }).catch((error: unknown) => {
      if (!(error instanceof ChartTooLarge)) throw error;
      const advice = "take --format json or mermaid";
      throw failure("machine_unusable", { file: name, reason: error.message, advice });
    });
  }
}

/** The flag that says which run has the actor. */
function pickConfig(): Pick<ReturnType<typeof configFlagsFor>, "config"> {
  const { config } = configFlagsFor([]);
  return { config };
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}
