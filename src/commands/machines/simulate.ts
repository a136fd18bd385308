// `rollout machines simulate`
import { createInterface } from "node:readline";
import type { Interface } from "node:readline";
import { describeError, failure } from "../../base/errors.ts";
import { printable } from "../../base/safe-text.ts";
import { ownMachines } from "../../charts/named-machine.ts";
import type { NamedMachine } from "../../charts/named-machine.ts";
import type { Step } from "../../charts/walk.ts";
import { Walk } from "../../charts/walk.ts";
import { BaseCommand } from "../../cli/base-command.ts";
import { machineArgs, machineFlags, unknownMachine } from "../../cli/machine-flags.ts";
import { Flags } from "../../cli/oclif.ts";
import { standingText, stepText, WALK_HELP, wishOf } from "../../cli/render/walk.ts";
import type { Wish } from "../../cli/render/walk.ts";
import { unlessInterrupted } from "../../cli/signals.ts";
import { loadUserMachine } from "../../compose/user-machine.ts";

export class MachinesSimulate extends BaseCommand {
  static override readonly summary = "Walk through a statechart, event by event.";
  static override readonly description =
    "Shows the state and the events that it takes, with their guards, and takes the next event from standard input: by number or " +
    "by name, with its fields as JSON behind it; `back`, `restart`, `quit`. Guards and assigns are the machine's own. Actions are " +
    "named and not executed, actors are not started, and a delay is an event like any other. With --json each step is one line.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> spot-drain",
    "<%= config.bin %> <%= command.id %> --plugin training.ts --input '{\"epochs\": 3}'",
    {
      description: "In a script:",
      command: `printf '%s\\n' 'item.assigned {"worker": "w"}' item.cancelled | <%= config.bin %> <%= command.id %> work-item --json`,
    },
  ];
  static override readonly args = machineArgs;
  static override readonly flags = {
    ...machineFlags,
    input: Flags.string({ summary: "What the machine begins with.", helpValue: "JSON", default: "{}" }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(MachinesSimulate);
    const machine = await this.#machine(args.name, flags.plugin);
    const walk = this.#begin(machine, this.#input(flags.input));
    await unlessInterrupted(this.#walkThrough(machine, walk), this.argv);
  }

  async #machine(name: string | undefined, plugin: string | undefined): Promise<NamedMachine> {
    if ((name === undefined) === (plugin === undefined))
      throw this.misuse("name one machine, or give --plugin FILE");
    if (plugin !== undefined) return await loadUserMachine(plugin);
    const found = ownMachines().find((machine) => machine.name === name);
    if (found === undefined) throw this.misuse(unknownMachine(name ?? ""));
    return found;
  }

  #input(text: string): unknown {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      throw this.misuse("--input takes JSON");
    }
  }

  #begin(machine: NamedMachine, input: unknown): Walk {
    try {
      return new Walk({ ...machine, input });
    } catch (error) {
      const reason = `it cannot begin: ${describeError(error)}`;
      throw failure("machine_unusable", {
        file: machine.name,
        reason,
        advice: "give what it begins with by --input JSON",
      });
    }
  }

  async #walkThrough({ name, model }: NamedMachine, walk: Walk): Promise<void> {
    const lines = this.#lines(walk);
    this.tell(`${name} ${model.version ?? ""}`.trim());
    this.#show(walk, { event: null, outcome: "began", words: "", detail: null, actions: [] });
    lines.prompt();
    for await (const line of lines) {
      const wish = wishOf(line, walk.standing.offered);
      if (wish.kind === "quit") break;
      if (wish.kind === "help") this.tell(WALK_HELP.trimEnd());
      else if (wish.kind !== "nothing") this.#show(walk, obey(walk, wish));
      lines.prompt();
    }
    lines.close();
  }

  #show(walk: Walk, { event: type, outcome, words, detail, actions }: Happened): void {
    const { standing } = walk;
    const { value, status, offered } = standing;
    const events = offered.map(({ event, label, transitions }) => ({
      ...{ event, label, guards: transitions.map(({ guard }) => guard) },
    }));
    const text = MOVES.has(outcome) ? words + standingText(standing) : words;
    this.print([{ event: type, outcome, detail, actions, state: value, status, events }], text);
  }

  /** Prompts on a terminal only; Ctrl-C there ends the input, as Ctrl-D does. */
  #lines(walk: Walk): Interface {
    const isTerminal = process.stdin.isTTY && process.stdout.isTTY && !this.isForPrograms;
    const completer = (typed: string): [string[], string] => {
      const words = [...walk.standing.offered.map(({ event }) => event), "back", "restart", "quit", "help"];
      return [words.filter((word) => word.startsWith(typed)), typed];
    };
    const lines = createInterface({
      input: process.stdin,
      ...(isTerminal && { output: process.stdout, terminal: true, completer, prompt: "> " }),
      ...(!isTerminal && { prompt: "" }),
    });
    lines.on("SIGINT", () => lines.close());
    return lines;
  }
}

interface Happened {
  readonly event: string | null;
  readonly outcome: "began" | Step["kind"] | "back" | "restarted" | "unclear";
  readonly words: string;
  /** Guards that said no, or what went wrong. */
  readonly detail: string | null;
  readonly actions: readonly string[];
}

/** After these it may stand elsewhere. */
const MOVES: ReadonlySet<Happened["outcome"]> = new Set(["began", "taken", "back", "restarted"]);

function obey(
  walk: Walk,
  wish: Extract<Wish, { readonly kind: "event" | "back" | "restart" | "unclear" }>,
): Happened {
  const nothing = { event: null, detail: null, actions: [] };
  switch (wish.kind) {
    case "unclear":
      return { ...nothing, outcome: "unclear", words: `${printable(wish.problem)}\n`, detail: wish.problem };
    case "back":
      return walk.back()
        ? { ...nothing, outcome: "back", words: "" }
        : { ...nothing, outcome: "ignored", words: "there is no step to undo\n" };
    case "restart":
      walk.restart();
      return { ...nothing, outcome: "restarted", words: "" };
    case "event": {
      const step = walk.take(wish.event);
      const happened = {
        ...nothing,
        event: wish.event.type,
        outcome: step.kind,
        words: stepText(wish.name, step),
      };
      if (step.kind === "taken") return { ...happened, actions: step.actions };
      if (step.kind === "refused") return { ...happened, detail: step.guards.join(", ") };
      return step.kind === "failed" ? { ...happened, detail: step.problem } : happened;
    }
  }
}
