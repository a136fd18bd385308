// Fleets of a coordinator process: the providers that its settings name, each asked for a few things at a time. The room of fleets and the
// providers are loaded when there are fleets, or when the store still has something of one.
import { isDeepStrictEqual } from "node:util";
import { isLoopback, parseAddress, showAddresses } from "../base/address.ts";
import type { Address } from "../base/address.ts";
import type { Clock } from "../base/clock.ts";
import { failure } from "../base/errors.ts";
import { gate } from "../base/gate.ts";
import { isUlid, newUlid } from "../base/ids.ts";
import type { RunId, StoreId, WorkerId } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import { turnstile } from "../base/turnstile.ts";
import type { FleetSettings, ProviderSettings, SshSettings } from "../config/fleet.ts";
import type { ResolvedConfig } from "../config/resolve.ts";
import type { FleetAnswer, FleetQuestion } from "../coordinator/fleet/ports.ts";
import type { ChangedFleets, FleetPorts, Fleets, FleetsOptions } from "../coordinator/fleet/fleets.ts";
import type { SshOptions } from "../fleet/ssh/ssh-provider.ts";
import type { Checked, FleetLabels, Provider } from "../fleet/provider.ts";
import { readHostManifest } from "./host-manifest.ts";
import type { Logger } from "../observe/log.ts";
import { workerEnvironment } from "../fleet/worker-environment.ts";
import { ALLOCATIONS_PREFIX, FLEETS_PREFIX } from "../storage/keys.ts";
import { prefixRange } from "../storage/store.ts";
import type { Store } from "../storage/store.ts";

export interface FleetParts {
  readonly runId: RunId;
  readonly storeId: StoreId;
  readonly settings: readonly FleetSettings[];
  /** Where workers find the coordinators. */
  readonly coordinators: () => readonly string[];
  /** Where the coordinator listens, as this machine reaches it. */
  readonly ownAddress: () => Address;
  /** The bundle of an allocation, a secret; null where the certificates of the run come from elsewhere. */
  readonly bundleFor: (allocation: string, coordinators: readonly string[]) => Promise<string | null>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** Throws fleet_out_of_reach: a loopback of ours is that of the workers' machines to them. */
export function refuseOutOfReach({ source, fleets, worker, transport }: ResolvedConfig): void {
  for (const { name, provider, advertise } of fleets) {
    if (provider.kind !== "ssh" || provider.tunnel || advertise !== undefined) continue;
    const addresses = transport.listenAddr.endsWith(":0") ? [transport.listenAddr] : worker.coordinatorAddr;
    const isOurs = addresses.every((address) => isLoopback(parseAddress(address)?.host ?? ""));
    if (isOurs)
      throw failure("fleet_out_of_reach", { source, fleet: name, addresses: showAddresses(addresses) });
  }
}

/** Launches and stops that are under way at once, of all fleets; lists do not wait for them. */
const AT_ONCE = 8;
/** Logins by ssh, of all fleets: an sshd turns away some of those beyond its tenth (`MaxStartups`). */
const LOGINS_AT_ONCE = 8;

/** `tunnelTo`: see `SshOptions`. */
export function sshOptions(
  settings: SshSettings,
  tunnelTo: (() => Address) | undefined,
  ports: Pick<SshOptions, "clock" | "random" | "log" | "logins">,
): SshOptions {
  const { args: words, timeoutMs: timeLimitMs, plugin, ...there } = settings;
  const manifest = plugin === undefined ? undefined : () => readHostManifest(plugin);
  return { ...there, ...ports, words, timeLimitMs, manifest, tunnelTo, isId: isUlid };
}

export class ProviderDesk implements FleetPorts {
  readonly #parts: FleetParts;
  /** Those of fleets that are not configured any more too: they are still to be drained. */
  readonly #settings: Map<string, FleetSettings>;
  #configured: readonly FleetSettings[];
  #tell: ((changed: ChangedFleets) => void) | undefined;
  #epoch = 0;
  readonly #providers = new Map<string, Promise<Provider>>();
  readonly #logins = gate(LOGINS_AT_ONCE);
  readonly #lanes = Array.from({ length: AT_ONCE }, () => turnstile());
  #asked = 0;

  constructor(parts: FleetParts) {
    this.#parts = parts;
    this.#configured = parts.settings;
    this.#settings = new Map(parts.settings.map((each) => [each.name, each]));
  }

  follow(tell: (changed: ChangedFleets) => void): void {
    this.#tell = tell;
  }

  /** The file has changed. Questions go by these settings from now on. */
  async change(settings: readonly FleetSettings[]): Promise<void> {
    if (isDeepStrictEqual(settings, this.#configured)) return;
    this.#configured = settings;
    for (const each of settings) {
      if (!isDeepStrictEqual(each.provider, this.#settings.get(each.name)?.provider)) {
        (await this.#providers.get(each.name))?.close?.();
        this.#providers.delete(each.name);
      }
      this.#settings.set(each.name, each);
    }
    const { Fleets } = await import("../coordinator/fleet/fleets.ts");
    this.#tell?.({ settings, empty: new Fleets([], this.#room(this.#epoch)) });
  }

  #room(epoch: number): FleetsOptions {
    const { random } = this.#parts;
    const newId = (wallMs: number): string => newUlid<WorkerId>({ wallMs: () => wallMs }, random);
    return { epoch, random, newId };
  }

  async open(store: Store, epoch: number): Promise<Fleets | undefined> {
    const settings = this.#configured;
    this.#epoch = epoch;
    if (settings.length === 0) {
      const left = [FLEETS_PREFIX, ALLOCATIONS_PREFIX].map((rows) =>
        store.scan({ ...prefixRange(rows), limit: 1 }),
      );
      if ((await Promise.all(left)).flat().length === 0) return undefined;
    }
    const { replayFleets } = await import("../coordinator/fleet/replay-fleets.ts");
    return replayFleets(store, settings, this.#room(epoch));
  }

  async ask(question: FleetQuestion): Promise<FleetAnswer> {
    const { fleet } = question;
    const provider = await this.#provider(fleet);
    // One that is not configured any more cannot be asked.
    const nobody = { kind: "unknown", reason: "the fleet is not in the configuration any more" } as const;
    switch (question.verb) {
      case "launch": {
        const { allocation } = question;
        const answer = provider && (await this.#inLane(() => this.#launch(provider, question)));
        return { verb: "launch", fleet, allocation, answer: answer ?? nobody };
      }
      case "list": {
        const answer = await provider?.list(this.#labels(fleet));
        return { verb: "list", fleet, number: question.number, answer: answer ?? nobody };
      }
      case "stop": {
        const { allocation, ref, force } = question;
        const request = { ...this.#labels(fleet), allocation, ref, force };
        const answer = provider && (await this.#inLane(() => provider.stop(request)));
        return { verb: "stop", fleet, allocation, answer: answer ?? nobody };
      }
      case "log": {
        const { allocation, ref } = question;
        const answer = await provider?.log({ ...this.#labels(fleet), allocation, ref });
        return { verb: "log", fleet, allocation, answer: answer ?? nobody };
      }
    }
  }

  async check(fleet: string): Promise<Checked | undefined> {
    return (await this.#provider(fleet))?.check(this.#labels(fleet));
  }

  /** Ends what providers keep running here for a leadership that is over. Workers go on. */
  async rest(): Promise<void> {
    for (const provider of this.#providers.values()) (await provider).close?.();
  }

  async #launch(
    provider: Provider,
    { fleet, allocation, epoch, slots }: Extract<FleetQuestion, { readonly verb: "launch" }>,
  ) {
    const { bundleFor, coordinators: elsewhere, log, clock } = this.#parts;
    const own = this.#settings.get(fleet);
    const coordinators = own?.advertise ?? elsewhere();
    const environment = own === undefined ? {} : workerEnvironment(own, clock.wallMs());
    try {
      const bundle = await bundleFor(allocation, coordinators);
      const names = { ...this.#labels(fleet), allocation, epoch };
      const request = { ...names, slots, coordinators, environment, bundle };
      return await provider.launch(request);
    } catch (err) {
      log.error("the bundle of an allocation cannot be made", { fleet, allocation, err });
      return {
        kind: "refused",
        reason: "its enrolment bundle cannot be made: the coordinator's log says why",
      } as const;
    }
  }

  #labels(fleet: string): FleetLabels {
    const { runId, storeId } = this.#parts;
    return { run: runId, store: storeId, fleet };
  }

  async #inLane<T>(question: () => Promise<T>): Promise<T> {
    const pass = this.#lanes[this.#asked++ % AT_ONCE];
    return pass === undefined ? question() : pass(question);
  }

  async #provider(fleet: string): Promise<Provider | undefined> {
    const found = this.#settings.get(fleet);
    if (found === undefined) return undefined;
    const known = this.#providers.get(fleet) ?? this.#open(found.provider);
    this.#providers.set(fleet, known);
    return known;
  }
  async #open(settings: ProviderSettings): Promise<Provider> {
    const { ownAddress, clock, random, log } = this.#parts;
    const { directory, timeoutMs: timeLimitMs } = settings;
    const common = { directory, timeLimitMs, isId: isUlid, clock, log };
    switch (settings.kind) {
      case "exec": {
        const { ExecProvider } = await import("../fleet/exec/exec-provider.ts");
        return new ExecProvider({ ...common, command: settings.command });
      }
      case "ssh": {
        const { SshProvider } = await import("../fleet/ssh/ssh-provider.ts");
        const ports = { clock, random, log, logins: this.#logins };
        return new SshProvider(sshOptions(settings, settings.tunnel ? ownAddress : undefined, ports));
      }
    }
  }
}
