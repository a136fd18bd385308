// The hosts of a local run: a fleet by ssh that its coordinator has, through tunnels. They are tried before anything is started, sent home before the
// coordinator leaves, and swept behind it.
//
// Keeps true: nothing of the run is left on a host that answers, however the run ends, as long as this process lives.
import { dirname, resolve } from "node:path";
import { parse, stringify } from "smol-toml";
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { failure, RolloutError } from "../../base/errors.ts";
import { gate } from "../../base/gate.ts";
import type { RunId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import { steerFleet } from "../../client/fleets.ts";
import { FLEET_LIST } from "../../config/fleet-fields.ts";
import { readFleets } from "../../config/fleet-file.ts";
import type { FleetSettings, SshSettings } from "../../config/fleet.ts";
import { parseConfigText, readTrustedText } from "../../config/toml-file.ts";
import type { SshProvider } from "../../fleet/ssh/ssh-provider.ts";
import { silentLogger } from "../../observe/log.ts";
import { sshOptions } from "../fleets.ts";
import type { RolloutClient } from "../rollout-client.ts";

/** A fleet for a local run. */
export interface HostCrew {
  readonly name: string;
  /** For the configuration of the coordinator. */
  readonly table: Readonly<Record<string, unknown>>;
  readonly settings: SshSettings;
  /** The manifest for its workers: a file, or what is to be put into one. */
  readonly manifest: { readonly file: string } | { readonly text: string };
}

/** The rest of what is said of its workers, beside where they are. */
export interface CrewRequest {
  readonly manifest: HostCrew["manifest"];
  /** Settings of workers, as words of a command line. */
  readonly words: readonly string[];
}

type Table = Readonly<Record<string, unknown>>;

const NAME = "hosts";
/** Keys of a fleet that was named on a command line: its workers come at once, and stay for the run. */
const OF_COMMAND = { finish_within: "0s", idle_timeout: "1d", max_pending: 1_000 };
const POLL = "1s";
const HOME_MS = 45_000;
const LOOK_EVERY_MS = 100;
const LOGINS_AT_ONCE = 8;

/** Hosts as they were named on a command line. Throws the refusals of `[[fleet]]`. */
export function crewOfHosts(hosts: readonly string[], slots: number, request: CrewRequest): HostCrew {
  return crewOf("flag --host", request, {
    ...{ name: NAME, provider: "ssh", hosts, slots, ...wordsIn(request.words) },
    ...OF_COMMAND,
  });
}

/** The fleet of that name in a file. Throws fleet_unknown, file_unreadable and the refusals of its keys. */
export async function crewOfFleet(name: string, file: string, request: CrewRequest): Promise<HostCrew> {
  const path = resolve(file);
  const text = await readTrustedText(path, "config_unreadable");
  const tables = fleetTables(text);
  const found = fleetsIn(path, text).find((fleet) => fleet.name === name);
  const table = tables.find((each) => each["name"] === name);
  if (found === undefined || table === undefined) {
    const known = tables.map((each) => String(each["name"])).join(", ");
    throw failure("fleet_unknown", { fleet: name, known: known === "" ? "none" : known });
  }
  const own = Object.fromEntries(Object.entries(table).filter(([key]) => key !== "advertise"));
  const words = [...(found.provider.kind === "ssh" ? found.provider.args : []), ...request.words];
  // The client runs where its file is, and the configuration of the run is elsewhere.
  const ssh = found.provider.kind === "ssh" ? found.provider.client : [];
  const client = ["env", `--chdir=${dirname(path)}`, ...ssh];
  return crewOf(path, request, { ...own, ...wordsIn(words), ssh: client });
}

/** A list of words has one. */
function wordsIn(words: readonly unknown[]): Table {
  return words.length === 0 ? {} : { args: words };
}

function crewOf(source: string, { manifest }: CrewRequest, table: Table): HostCrew {
  const whole = { poll_interval: POLL, ...table, tunnel: true };
  const [fleet] = fleetsIn(source, stringify({ [FLEET_LIST]: [whole] }));
  if (fleet?.provider.kind !== "ssh") {
    const [key, allowed] = ["provider", "ssh: `rollout run` brings workers to hosts alone"];
    throw failure("config_invalid_value", { source, key, value: fleet?.provider.kind ?? "", allowed });
  }
  return { name: fleet.name, table: whole, settings: fleet.provider, manifest };
}

function fleetsIn(file: string, text: string): readonly FleetSettings[] {
  const isFleet = (name: string): boolean => name === FLEET_LIST;
  const settings = parseConfigText(file, text, () => true, isFleet);
  return readFleets(
    file,
    settings.filter(({ key }) => key === FLEET_LIST || key.startsWith(`${FLEET_LIST}[`)),
  );
}

function fleetTables(text: string): readonly Table[] {
  const tables = parse(text)[FLEET_LIST];
  return Array.isArray(tables) ? (tables as readonly Table[]) : [];
}

export class Hosts {
  readonly #crew: HostCrew;
  readonly #ports: { readonly clock: Clock; readonly random: Random };
  #provider: Promise<SshProvider> | undefined;
  #isSwept = false;

  constructor(crew: HostCrew, ports: { readonly clock: Clock; readonly random: Random }) {
    this.#crew = crew;
    this.#ports = ports;
  }

  /** Says which hosts cannot be used. Throws fleet_not_ready where none can. */
  async demand(runId: RunId, say: (sentence: string) => void): Promise<void> {
    const tried = await (await this.#open()).tryHosts(this.#labels(runId));
    const troubles = tried.flatMap(({ trouble }) => trouble ?? []);
    if (troubles.length === tried.length)
      throw failure("fleet_not_ready", { fleet: this.#crew.name, reason: troubles.join("; ") });
    for (const trouble of troubles) say(`nothing can be started on ${trouble}`);
  }

  /** They were sent home at the end of the run before. */
  async call(client: RolloutClient): Promise<void> {
    const { name } = this.#crew;
    const { fleets } = await client.status();
    const fleet = fleets.find((each) => each.name === name);
    if (fleet?.state === "paused" || fleet?.state === "halted")
      await steerFleet(client.fleetCalls, "resume", { target: name });
  }

  /** Workers hand back what they have not started and finish what they can. Resolves when all have gone, or it takes too long. */
  async sendHome(client: RolloutClient): Promise<void> {
    const { clock } = this.#ports;
    const { name } = this.#crew;
    const endMs = clock.monotonicMs() + HOME_MS;
    try {
      await steerFleet(client.fleetCalls, "end", { target: name, reason: "the command has ended" });
      for (;;) {
        const { fleets } = await client.status();
        const fleet = fleets.find((each) => each.name === name);
        const left = fleet && fleet.joined + fleet.starting + fleet.queued + fleet.ending;
        if (left === undefined || left === 0 || clock.monotonicMs() >= endMs) return;
        await sleep(clock, LOOK_EVERY_MS);
      }
    } catch (error) {
      // Without a coordinator nobody can tell them: what is left is swept.
      if (!(error instanceof RolloutError)) throw error;
    }
  }

  /** Behind the coordinator. Says what could not be cleared up. */
  async sweep(runId: RunId, say: (sentence: string) => void): Promise<void> {
    if (this.#isSwept) return;
    this.#isSwept = true;
    for (const trouble of await (await this.#open()).clear(this.#labels(runId)))
      say(`something of the run may be left on ${trouble}`);
  }

  #labels(run: RunId): { readonly run: RunId; readonly store: string; readonly fleet: string } {
    return { run, store: "*", fleet: this.#crew.name };
  }

  #open(): Promise<SshProvider> {
    this.#provider ??= import("../../fleet/ssh/ssh-provider.ts").then(({ SshProvider }) => {
      const ports = { ...this.#ports, log: silentLogger, logins: gate(LOGINS_AT_ONCE) };
      return new SshProvider(sshOptions(this.#crew.settings, undefined, ports));
    });
    return this.#provider;
  }
}
