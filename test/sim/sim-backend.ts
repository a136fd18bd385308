// Executes the items of a simulated run as their payloads say, and writes each execution into the journal.
import { createHash } from "node:crypto";
import { sleep } from "../../src/base/clock.ts";
import { itemIdText } from "../../src/coordinator/ledger/place.ts";
import type {
  Backend,
  ItemAttempt,
  ItemReport,
  KeyOfItem,
  Outcome,
} from "../../src/worker/backends/backend.ts";
import { isWork } from "../../src/worker/backends/key-asks.ts";
import type { Execution, Journal } from "./journal.ts";
import type { SimProcess } from "./process.ts";
import { STABLE_VERSION } from "./release-settings.ts";
import type { Badness } from "./release-settings.ts";
import type { SimWorld } from "./world.ts";
import { folded, STATE_SEPARATOR } from "./shadow-keys.ts";
import { between, happens, Violation } from "./world.ts";
import { kindOfItem, stepActor } from "./actor-machine.ts";
import { OUTPUT_MAX_BYTES } from "./workload.ts";

export interface SimBackendOptions {
  readonly world: SimWorld;
  readonly process: SimProcess;
  readonly journal: Journal;
  /** The version of the plugin that it is. */
  readonly version: string;
  /** How it is bad; undefined: it is not. */
  readonly badness?: Badness | undefined;
  /** Called with each start, before anything of it happens. */
  readonly onStart: (execution: Execution) => void;
  /** The chance that an item waits for a model that loads. */
  readonly loadingChance: number;
  /** It does not ask whether an item may begin when its turn has come. */
  readonly beginsUnasked?: true;
  /** Keys are actors, executed by code of this version; undefined: each has the list of its successes for a state. */
  readonly actors?: { readonly version: number; readonly actors: number } | undefined;
  /** The item has killed this process. */
  readonly onKilled: () => void;
}

const ORDINARY_MAX_MS = 400;
const SLOW_MAX_MS = 9_000;
/** Between the start of what executes an item and its beginning. */
const STARTING_MAX_MS = 20;
const LOADING_MAX_MS = 3_000;
/** How long an execution that is told to end takes for it. */
const END_MAX_MS = 200;
const LEFT_AT = "at ";
/** The share of its failures with which a candidate that kills takes its worker down. */
const KILLS_CHANCE = 0.2;

export class SimBackend implements Backend {
  readonly #options: SimBackendOptions;
  /** The signal that all executions of this process share; aborted when one of them takes it down. Then there is a new one. */
  #server = new AbortController();

  constructor(options: SimBackendOptions) {
    this.#options = options;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async execute(
    offered: ItemAttempt,
    signal: AbortSignal,
    report: (report: ItemReport) => void,
  ): Promise<Outcome> {
    const { process, loadingChance, beginsUnasked } = this.#options;
    const { clock, random } = process;
    // As a process that is started, and a model that loads.
    const waitMs = happens(random, loadingChance)
      ? between(random, 0, LOADING_MAX_MS)
      : between(random, 0, STARTING_MAX_MS);
    await sleep(clock, waitMs, signal);
    if (signal.aborted || (beginsUnasked !== true && offered.mayBegin?.() === false))
      return { kind: "preempted" };
    return this.#execute(offered, signal, report);
  }

  async #execute(
    { itemId, attempt, payload, checkpoint, keyed }: ItemAttempt,
    signal: AbortSignal,
    report: (report: ItemReport) => void,
  ): Promise<Outcome> {
    const { world, process, journal, version, onStart, onKilled } = this.#options;
    const { random, clock } = process;
    const execution: Execution = {
      item: itemIdText(itemId),
      attempt,
      version,
      worker: process,
      startedAtMs: world.nowMs,
      assignedAtMs: undefined,
      isTrial: false,
      runsAlone: false,
      isTooLarge: false,
      endedAtMs: undefined,
      outcome: undefined,
      output: undefined,
    };
    const before = journal.of(execution.item);
    const earlier = before.length;
    // It fails an item that nothing has failed: so none fails for good if a person gives it all of them.
    const isFirst =
      failedBefore(journal, execution.item) === 0 && !before.some((one) => one.version === version);
    const badness = isFirst ? this.#options.badness : undefined;
    journal.add(execution);
    process.say(`starts ${short(execution.item)}#${attempt} ${Buffer.from(payload).toString()}`);
    onStart(execution);
    if (checkpoint.length > 0 && attemptThatLeft(checkpoint) >= attempt)
      world.violate(new Violation(`attempt ${attempt} goes on from what a later one has left`));
    const end = (outcome: Outcome): Outcome => {
      execution.endedAtMs = world.nowMs;
      execution.outcome = outcome.kind;
      if (outcome.kind === "success") {
        execution.output = digestOf(outcome.output);
        execution.isTooLarge = outcome.output.length > OUTPUT_MAX_BYTES;
      }
      process.say(`ends ${short(execution.item)}#${attempt}: ${outcome.kind}`);
      return outcome;
    };
    process.onDeath(() => {
      execution.endedAtMs ??= world.nowMs;
      execution.outcome ??= "died";
    });
    const kind = kindOfItem(execution.item, payload);
    if (happens(random, 0.2)) report({ kind: "checkpoint", checkpoint: Buffer.from(`${LEFT_AT}${attempt}`) });
    const { signal: died } = this.#server;
    const isSlow = kind === "slow" || badness === "crawls";
    const durationMs = between(random, 1, isSlow ? SLOW_MAX_MS : ORDINARY_MAX_MS);
    await sleep(clock, durationMs, AbortSignal.any([signal, died]));
    if (badness === "falls" && !signal.aborted && !died.aborted) this.#fall();
    if (kind === "toxic" && !signal.aborted && !died.aborted && journal.at(process).length > 1) this.#fall();
    if (signal.aborted) {
      await sleep(clock, between(random, 0, END_MAX_MS));
      return end({ kind: "preempted" });
    }
    if (died.aborted) return end({ kind: "crash_shared", message: "the server died" });
    if (kind === "deadly" && earlier === 0) onKilled();
    if (badness === "kills" && happens(random, KILLS_CHANCE)) onKilled();
    if (badness === "errs" || badness === "kills") return end({ kind: "error", message: "it is worse" });
    const failures = kind === "bad" ? Infinity : kind === "flaky" ? 1 + (payload.length % 2) : 0;
    if (failedBefore(journal, execution.item) < failures)
      return end({ kind: "error", message: `${Buffer.from(payload).toString()} says no` });
    // Which execution a result came from can be seen in it.
    const of = version === STABLE_VERSION ? "" : ` of ${version}`;
    const output = Buffer.from(`${Buffer.from(payload).toString()} by ${process.name} as ${attempt}${of}`);
    return end({
      kind: "success",
      output: kind === "big" ? Buffer.alloc(OUTPUT_MAX_BYTES + 1) : output,
      ...(keyed && this.#leave(keyed, { item: execution.item, attempt, payload })),
    });
  }

  /** The state of its key from now on, and what its machine asks for. */
  #leave(
    { key, state, origin }: KeyOfItem,
    { item: idText, attempt, payload }: Pick<Execution, "item" | "attempt"> & Pick<ItemAttempt, "payload">,
  ): Pick<Extract<Outcome, { readonly kind: "success" }>, "state" | "asks" | "end"> {
    const { actors, world } = this.#options;
    if (actors === undefined) {
      const before = Buffer.from(state ?? []).toString();
      return { state: Buffer.from(`${before}${STATE_SEPARATOR}${folded(idText, attempt)}`) };
    }
    if (isWork(origin)) return {};
    try {
      return stepActor(state, { idText, key, payload, origin }, actors);
    } catch (violation) {
      world.violate(violation);
      return {};
    }
  }

  /** Everything that executes here dies with what it shares. */
  #fall(): void {
    const server = this.#server;
    this.#server = new AbortController();
    server.abort();
  }
}

function failedBefore(journal: Journal, item: string): number {
  return journal.of(item).filter(({ outcome }) => outcome === "error").length;
}

function attemptThatLeft(checkpoint: Uint8Array): number {
  return Number(Buffer.from(checkpoint).toString().slice(LEFT_AT.length));
}

function digestOf(output: Uint8Array): string {
  return createHash("sha256").update(output).digest("hex");
}

/** Enough of an id to tell items of one run apart. */
export function short(idText: string): string {
  return idText.slice(0, 6);
}
