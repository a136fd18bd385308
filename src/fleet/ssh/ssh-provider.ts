// Hosts that are there already, as a provider: one worker of a fleet on each of them, started and ended by the system's `ssh`. docs/fleet.md has
// what a host needs.
//
// In the room: `host-script` is what a host is told, `host-call` a login, `seats` who has which host, `tunnel` the way back from one, and `tunnels`
// those of a fleet. The reference of an allocation is its host.
//
// Keeps true: an allocation is launched on another host only if the one before was told nothing, or has said no.
import type { Address } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { describeError } from "../../base/errors.ts";
import type { Gate } from "../../base/gate.ts";
import type { Random } from "../../base/random.ts";
import { printable, redactSecrets } from "../../base/safe-text.ts";
import type { HostSettings } from "../../config/fleet.ts";
import type { Logger } from "../../observe/log.ts";
import { LOG_BYTES_MAX } from "../provider.ts";
import type {
  AllocationName,
  Checked,
  FleetLabels,
  FoundLog,
  LaunchRequest,
  Launched,
  ListedAllocation,
  Listing,
  Provider,
  SilentPlace,
  Stopped,
  StopRequest,
} from "../provider.ts";
import { callHost, reasonOf } from "./host-call.ts";
import type { HostOutcome } from "./host-call.ts";
import { BUSY } from "./host-script.ts";
import type { HostRequest } from "./host-script.ts";
import { Seats } from "./seats.ts";
import { Tunnels } from "./tunnels.ts";

export interface SshOptions {
  readonly hosts: readonly HostSettings[];
  readonly client: readonly [string, ...string[]];
  /** Where the client runs: the directory of the configuration. */
  readonly directory: string;
  readonly program: string;
  /** Further words for each worker. */
  readonly words: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Where workers start on a host; empty: where a login begins. */
  readonly hostDirectory: string;
  /** The text of a manifest that each worker gets. Rejects where it cannot be read. */
  readonly manifest: (() => Promise<string>) | undefined;
  readonly timeLimitMs: number;
  /** Where the coordinator listens on this machine, if workers come to it through tunnels. */
  readonly tunnelTo: (() => Address) | undefined;
  readonly logins: Gate;
  /** Whether it is the form of an allocation's id. */
  readonly isId: (text: string) => boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

interface HostHeard {
  readonly host: string;
  readonly outcome: HostOutcome;
}

interface Found extends Pick<ListedAllocation, "allocation" | "state"> {
  /** At which its worker looks for the coordinator. */
  readonly port: number | undefined;
}

type LaunchVerdict =
  | { readonly kind: "launched" }
  | { readonly kind: "busy"; readonly owner: string }
  | { readonly kind: "refused" | "unknown"; readonly reason: string };

const LISTED_MAX = 10_000;
const WORD_CHARS_MAX = 100;
const LINE = /^(\S+) (\S+)(?: (\d*))?$/;
const LAUNCHED_LINE = /^launched (\d*)\n/;
const BUSY_LINE = new RegExp(`^${BUSY} (\\S+)\\n`);

export class SshProvider implements Provider {
  readonly #options: SshOptions;
  readonly #seats: Seats;
  readonly #tunnels: Tunnels | undefined;
  readonly #oddWords = new Set<string>();

  constructor(options: SshOptions) {
    this.#options = options;
    this.#seats = new Seats(options.hosts.map(({ host }) => host));
    const { tunnelTo } = options;
    this.#tunnels = tunnelTo && new Tunnels({ ...options, tunnelTo });
  }

  async launch(request: LaunchRequest): Promise<Launched> {
    const { allocation } = request;
    const manifest = await this.#options.manifest?.().catch(asError);
    if (manifest instanceof Error) return { kind: "refused", reason: describeError(manifest) };
    const noes: string[] = [];
    const tried = new Set<string>();
    for (;;) {
      const host = this.#seats.take(allocation, tried);
      if (host === undefined) break;
      tried.add(host);
      const verdict = await this.#launchAt(host, request, manifest);
      this.#seats.settle(allocation, host, verdict);
      if (verdict.kind === "launched") return { kind: "launched", ref: host };
      if (verdict.kind === "unknown") return { kind: "unknown", reason: verdict.reason };
      if (verdict.kind === "refused") noes.push(verdict.reason);
    }
    // While somebody has a host nothing is wrong with the fleet: hosts that do not work are tried again like those that are taken.
    if (noes.length === 0 || this.#seats.isAnyTaken)
      return { kind: "full", reason: ["each host that works has its worker", ...noes].join("; ") };
    return { kind: "refused", reason: noes.join("; ") };
  }

  async list(labels: FleetLabels): Promise<Listing> {
    const asked = this.#seats.moment();
    const heard = await this.#askEach(this.#hosts, labels, { verb: "list" });
    const silent: SilentPlace[] = [];
    const allocations = new Map<string, ListedAllocation>();
    for (const each of heard) {
      const found = this.#listedAt(each, labels);
      if (typeof found === "string") {
        silent.push({ ref: each.host, reason: found });
        continue;
      }
      const there = found.find(({ state }) => state !== "ended");
      const isNews = this.#seats.seen(each.host, there?.allocation, asked);
      if (isNews) this.#tunnels?.keep(each.host, there?.port);
      for (const one of found)
        if (allocations.get(one.allocation)?.state !== "running")
          allocations.set(one.allocation, { ...one, ref: each.host, isPreempted: false });
    }
    const reason = silent.map((each) => each.reason).join("; ");
    if (silent.length === heard.length) return { kind: "unknown", reason };
    if (allocations.size > LISTED_MAX)
      return { kind: "unknown", reason: `they list more than ${LISTED_MAX} allocations` };
    return { kind: "listed", allocations: [...allocations.values()], silent };
  }

  async stop({ force, ...name }: StopRequest): Promise<Stopped> {
    const request = { verb: "stop", allocation: name.allocation, force } as const;
    const { trouble } = await this.#askWhereItIs(name, request);
    return trouble === undefined ? { kind: "stopped" } : { kind: "unknown", reason: trouble };
  }

  async log(name: AllocationName): Promise<FoundLog> {
    const { said, trouble } = await this.#askWhereItIs(name, {
      verb: "log",
      allocation: name.allocation,
    });
    if (trouble !== undefined && said === "") return { kind: "unknown", reason: trouble };
    const text = Buffer.from(redactSecrets(said)).subarray(-LOG_BYTES_MAX).toString("utf8");
    return { kind: "log", text };
  }

  async check(labels: FleetLabels): Promise<Checked> {
    const tried = await this.tryHosts(labels);
    const troubles = tried.flatMap(({ trouble }) => trouble ?? []);
    if (troubles.length > 0) {
      const others = tried.length - troubles.length;
      const rest = others > 0 ? [`hosts that can: ${others}`] : [];
      return { kind: "refused", reason: [...troubles, ...rest].join("; ") };
    }
    return { kind: "ready", words: printable([...new Set(tried.map(({ words }) => words))].join(", ")) };
  }

  /** The words of its program about itself for each host, or why nothing can be started there. */
  async tryHosts(
    labels: FleetLabels,
  ): Promise<readonly { readonly words: string; readonly trouble: string | undefined }[]> {
    const { program, environment } = this.#options;
    const request = { verb: "check", program: { program, environment } } as const;
    const heard = await this.#askEach(this.#hosts, labels, request);
    return heard.map((each) => ({
      words: each.outcome.kind === "done" ? each.outcome.text.trim() : "",
      trouble: troublesOf([each])[0],
    }));
  }

  /**
   * Ends all that the fleet has on its hosts, at once, and leaves nothing there: of any store of the run where that is `*`. Resolves with what
   * could not be done, in words.
   */
  async clear(labels: FleetLabels): Promise<readonly string[]> {
    return troublesOf(await this.#askEach(this.#hosts, labels, { verb: "clear" }));
  }

  close(): void {
    this.#tunnels?.closeAll();
  }

  get #hosts(): readonly string[] {
    return this.#options.hosts.map(({ host }) => host);
  }

  async #launchAt(
    host: string,
    request: LaunchRequest,
    manifest: string | undefined,
  ): Promise<LaunchVerdict> {
    const { hosts, program, words } = this.#options;
    const { allocation, bundle } = request;
    const environment = { ...request.environment, ...this.#options.environment };
    const slots = hosts.find((each) => each.host === host)?.slots ?? request.slots;
    const tunnel = await this.#tunnels?.open(host);
    if (tunnel?.kind === "closed") return { kind: "refused", reason: tunnel.reason };
    const port = tunnel?.port;
    const coordinators = port === undefined ? request.coordinators : [`127.0.0.1:${port}`];
    const start = { program, environment, words, manifest, allocation, slots, bundle, coordinators, port };
    const outcome = await this.#ask(host, request, { verb: "launch", start });
    if (outcome.kind === "done") {
      // The worker may be there since long, and look at another port.
      const [, there = ""] = LAUNCHED_LINE.exec(outcome.text) ?? [];
      if (there !== "") this.#tunnels?.keep(host, Number(there));
      return { kind: "launched" };
    }
    const owner = outcome.kind === "refused" ? BUSY_LINE.exec(outcome.text)?.[1] : undefined;
    if (owner !== undefined) return { kind: "busy", owner };
    return { kind: outcome.kind === "unknown" ? "unknown" : "refused", reason: reasonIn(host, outcome) };
  }

  #ask(host: string, labels: FleetLabels, request: HostRequest): Promise<HostOutcome> {
    // Hosts may share their home directories, and one of them may have several names.
    const name = `${labels.run}-${labels.store}-${labels.fleet}-${host.replaceAll(/[^\w.@-]/g, "_")}`;
    return callHost(this.#options, host, {
      place: { directory: this.#options.hostDirectory, name },
      ...request,
    });
  }

  /** Asks its host; each of them while that is not known. */
  async #askWhereItIs(
    { allocation, ref, ...labels }: AllocationName,
    request: HostRequest,
  ): Promise<{ readonly said: string; readonly trouble: string | undefined }> {
    const known = ref === "" ? this.#seats.of(allocation) : ref;
    const hosts = known === undefined ? this.#options.hosts.map(({ host }) => host) : [known];
    const outcomes = await this.#askEach(hosts, labels, request);
    const said = outcomes.flatMap(({ outcome }) => (outcome.kind === "done" ? [outcome.text] : []));
    return { said: said.join(""), trouble: troublesOf(outcomes)[0] };
  }

  #askEach(
    hosts: readonly string[],
    labels: FleetLabels,
    request: HostRequest,
  ): Promise<readonly HostHeard[]> {
    return Promise.all(
      hosts.map(async (host) => ({ host, outcome: await this.#ask(host, labels, request) })),
    );
  }

  /** Words, where its answer is no list. */
  #listedAt({ host, outcome }: HostHeard, labels: FleetLabels): readonly Found[] | string {
    if (outcome.kind !== "done") return reasonIn(host, outcome);
    const listed: Found[] = [];
    for (const line of outcome.text.split("\n")) {
      if (line === "") continue;
      const [, allocation = "", word = "", port = ""] = LINE.exec(line) ?? [];
      if (!this.#options.isId(allocation)) return `${host}: an allocation in its list has no id of ours`;
      const isKnown = word === "running" || word === "ended";
      if (!isKnown) this.#warnOf(word, labels.fleet);
      listed.push({
        allocation,
        state: isKnown ? word : "running",
        port: port === "" ? undefined : Number(port),
      });
    }
    return listed;
  }

  #warnOf(word: string, fleet: string): void {
    const shown = printable(word).slice(0, WORD_CHARS_MAX);
    if (this.#oddWords.has(shown) || this.#oddWords.size >= LISTED_MAX) return;
    this.#oddWords.add(shown);
    const message = "the provider of a fleet says a state that nobody knows; it counts as running";
    this.#options.log.warn(message, { fleet, state: shown });
  }
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** A reason for each host that has not done what it was asked. */
function troublesOf(heard: readonly HostHeard[]): string[] {
  return heard.flatMap(({ host, outcome }) => (outcome.kind === "done" ? [] : [reasonIn(host, outcome)]));
}

function reasonIn(host: string, outcome: HostOutcome): string {
  return "reason" in outcome
    ? outcome.reason
    : `${host}: ${reasonOf(outcome.text, "it says no, and not why")}`;
}
