// Fleets of a coordinator process: the providers that its settings name, each asked for a few things at a time. The room of fleets and the
// providers are loaded when there are fleets, or when the store still has something of one.
import type { Clock } from "../base/clock.ts";
import { isUlid, newUlid } from "../base/ids.ts";
import type { RunId, StoreId, WorkerId } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import { turnstile } from "../base/turnstile.ts";
import type { FleetSettings } from "../config/fleet.ts";
import type { FleetAnswer, FleetQuestion } from "../coordinator/fleet/ports.ts";
import type { FleetPorts, Fleets } from "../coordinator/fleet/fleets.ts";
import type { Checked, FleetLabels, Provider } from "../fleet/provider.ts";
import type { Logger } from "../observe/log.ts";
import { ALLOCATIONS_PREFIX } from "../storage/keys.ts";
import { prefixRange } from "../storage/store.ts";
import type { Store } from "../storage/store.ts";

export interface FleetParts {
  readonly runId: RunId;
  readonly storeId: StoreId;
  readonly settings: readonly FleetSettings[];
  /** Where workers find the coordinators. */
  readonly coordinators: () => readonly string[];
  /** The bundle of an allocation, a secret; null where the certificates of the run come from elsewhere. */
  readonly bundleFor: (allocation: string) => Promise<string | null>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** Launches and stops that are under way at once, of all fleets; lists do not wait for them. */
const AT_ONCE = 8;

export class ProviderDesk implements FleetPorts {
  readonly #parts: FleetParts;
  readonly #providers = new Map<string, Promise<Provider>>();
  readonly #lanes = Array.from({ length: AT_ONCE }, () => turnstile());
  #asked = 0;

  constructor(parts: FleetParts) {
    this.#parts = parts;
  }

  async open(store: Store, epoch: number): Promise<Fleets | undefined> {
    const { settings, random } = this.#parts;
    if (settings.length === 0) {
      const left = await store.scan({ ...prefixRange(ALLOCATIONS_PREFIX), limit: 1 });
      if (left.length === 0) return undefined;
    }
    const { replayFleets } = await import("../coordinator/fleet/replay-fleets.ts");
    const newId = (wallMs: number): string => newUlid<WorkerId>({ wallMs: () => wallMs }, random);
    return replayFleets(store, settings, { epoch, random, newId });
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

  async #launch(
    provider: Provider,
    { fleet, allocation, epoch, slots }: Extract<FleetQuestion, { readonly verb: "launch" }>,
  ) {
    const { bundleFor, coordinators, log } = this.#parts;
    try {
      const bundle = await bundleFor(allocation);
      const request = {
        ...this.#labels(fleet),
        allocation,
        epoch,
        slots,
        coordinators: coordinators(),
        bundle,
      };
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
    const { settings, clock, log } = this.#parts;
    const found = settings.find(({ name }) => name === fleet);
    if (found === undefined) return undefined;
    const { command, directory, timeoutMs } = found.provider;
    const open = async (): Promise<Provider> => {
      const { ExecProvider } = await import("../fleet/exec/exec-provider.ts");
      return new ExecProvider({ command, directory, timeLimitMs: timeoutMs, isId: isUlid, clock, log });
    };
    const known = this.#providers.get(fleet) ?? open();
    this.#providers.set(fleet, known);
    return known;
  }
}
