// `rollout inspect`
import { showAddresses } from "../base/address.ts";
import { errnoOf } from "../base/errors.ts";
import { Flags } from "../cli/oclif.ts";
import { configFlags } from "../cli/setting-flags.ts";
import { untilSeenEnough } from "../cli/signals.ts";
import { listenForPrograms, startInspection } from "../compose/inspection.ts";
import { loadUserMachines } from "../compose/user-machine.ts";
import { OperatorCommand } from "../compose/operator-command.ts";
import type { ClientConfig } from "../config/resolve.ts";

const PORT_MAX = 65_535;
/** Where no configuration says how. */
const LOG = { level: "info", format: "auto" } as const;

export class Inspect extends OperatorCommand {
  static override readonly summary =
    "Show the run in a browser: its statecharts as they move, and the cluster.";
  static override readonly description =
    "Serves a page on this machine alone and prints its address, until Ctrl-C; it opens no browser. The address has a token in it, " +
    "made anew at each start: anybody of this machine who has it may do what the operator's certificate may. The coordinator may be " +
    "away: the page says so, and goes on when it is back. From another machine, with the same port at both ends: " +
    "`ssh -L 8090:127.0.0.1:8090 HOST`.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> --port 8090",
    "<%= config.bin %> <%= command.id %> --listen --listen-port 8091",
    "<%= config.bin %> <%= command.id %> --actors order.toml",
    "<%= config.bin %> <%= command.id %> --json",
  ];
  static override readonly flags = {
    ...configFlags("operator"),
    port: Flags.integer({
      summary: "[default: 0, a free one] The port of loopback that it is served at.",
      default: 0,
      min: 0,
      max: PORT_MAX,
      helpValue: "N",
    }),
    actors: Flags.string({
      summary:
        "Also show the run's durable actors, with the charts of this plugin. Its code is loaded into this process.",
      helpValue: "FILE",
    }),
    listen: Flags.boolean({
      summary:
        "Take connections of programs that use @statelyai/inspect, and show their machines too; then no run is needed.",
    }),
    "listen-port": Flags.integer({
      summary: "[default: 0, a free one] The port of loopback that programs connect to.",
      min: 0,
      max: PORT_MAX,
      helpValue: "N",
      dependsOn: ["listen"],
    }),
  };

  override async run(): Promise<void> {
    const { flags } = await this.parse(Inspect);
    const config = await this.#configOfRun(flags);
    const enough = untilSeenEnough(this.argv, false);
    const log = await this.openLog(config?.log ?? LOG);
    if (flags.actors !== undefined && config === undefined) throw this.misuse("--actors goes with a run");
    const machines = flags.actors === undefined ? undefined : await loadUserMachines(flags.actors);
    const programs = flags.listen ? await listenForPrograms(flags["listen-port"] ?? 0, log) : undefined;
    const run = config && {
      ...{ config, load: () => this.loadConfig("operator", flags), line: this.hinted },
    };
    const inspection = await startInspection({
      ...(run && { run }),
      ...(machines && { machines }),
      ...(programs && { programs: { news: programs, listensAt: programs.listensAt } }),
      ...{ port: flags.port, version: this.config.version, log },
    });
    const { url } = inspection;
    const run_id = config?.runId ?? null;
    const addresses = config === undefined ? null : showAddresses(config.worker.coordinatorAddr);
    const listens_at = programs?.listensAt ?? null;
    const lines = [url, ...(programs ? [programs.listensAt] : [])];
    this.print([{ url, run_id, coordinator: addresses, listens_at }], `${lines.join("\n")}\n`);
    if (config === undefined)
      this.tell("There is no run here: it shows programs alone. Press Ctrl-C to end.");
    else this.tell(`It shows run ${config.runId}, of the coordinator at ${addresses}: press Ctrl-C to end.`);
    if (programs !== undefined)
      this.tell("Programs connect to the second address, by createWebSocketInspector of @statelyai/inspect.");
    await new Promise<void>((resolve) => {
      enough.signal.addEventListener("abort", () => resolve());
      if (enough.signal.aborted) resolve();
    });
    await inspection.close();
    await programs?.close();
  }

  /** Undefined where there is none, and programs alone are to be shown. */
  async #configOfRun(
    flags: Readonly<Record<string, unknown>> & { readonly listen: boolean },
  ): Promise<ClientConfig | undefined> {
    try {
      return await this.loadConfig("operator", flags);
    } catch (error) {
      const isAbsent = flags["config"] === undefined && errnoOf(error) === "ENOENT";
      if (flags.listen && isAbsent) return undefined;
      throw error;
    }
  }
}
