// The operator of the run: submits its batches, seals it, and looks until it is complete. Beside that, in some runs, pauses and
// resumes it, takes failed items back, or cancels it. Asks again when nobody answers.
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import { sleep } from "../../src/base/clock.ts";
import { RolloutError } from "../../src/base/errors.ts";
import { newUlid, ulidToBytes } from "../../src/base/ids.ts";
import type { RunId } from "../../src/base/ids.ts";
import { KeyAction, KeyService } from "../../src/gen/rollout/v1/keys_pb.ts";
import { KeyPhase, OperatorService, RunState } from "../../src/gen/rollout/v1/run_pb.ts";
import { seenRun } from "../support/worker-client.ts";
import type { Release } from "../../src/client/releases.ts";
import type { SimProcess } from "./process.ts";
import { ReleaseOperator } from "./release-operator.ts";
import { PLUGIN } from "./release-settings.ts";
import type { ReleaseSettings } from "./release-settings.ts";
import type { Steering } from "./settings.ts";
import { between, happens, Violation } from "./world.ts";
import { TASK_DIGEST } from "./workload.ts";
import type { Workload } from "./workload.ts";

const PAUSE_MAX_MS = 1_500;
const AGAIN_MIN_MS = 50;
const AGAIN_MAX_MS = 600;
const LOOK_EVERY_MS = 400;
/** Decisions about the run, and the time between two of them. */
const STEPS_MAX = 5;
const STEP_MAX_MS = 4_000;
const PAUSED_MAX_MS = 3_000;
const CANCEL_MAX_MS = 8_000;

interface Wanted {
  readonly workload: Workload;
  readonly steering: Steering;
  readonly actors: readonly string[];
  /** Undefined: there is no release, and the run names no plugin. */
  readonly release: ReleaseSettings | undefined;
  /** Told of a key before it is asked to go on without what has failed. */
  readonly skips: (key: string) => void;
  /** Told of a key before it is asked to pause: a call that was given up may come much later. */
  readonly pauses: (key: string) => void;
  /** Told of a failure that nobody waits for. */
  readonly fail: (error: unknown) => void;
}

/** A leader that cannot read its database just now says so; the next look finds it again, or another leader. */
const UNREACHABLE: ReadonlySet<string> = new Set(["store_unreachable"]);

export class Operator {
  readonly #process: SimProcess;
  readonly #workload: Workload;
  readonly #steering: Steering;
  readonly #wanted: Wanted;
  readonly #client;
  readonly #keys;
  readonly #hasKeys: boolean;
  /** Every actor that there may be. */
  readonly #actors: readonly string[];
  #isDone = false;
  /** It may be that the run is cancelled. */
  #hasCancelled = false;
  /** The store went back to an older state, and nobody has brought in again what it may lack. */
  #wentBack = false;
  #hasEverGoneBack = false;
  #isShut = false;
  /** Nothing more is begun: the end of the run is waited for, or here. */
  #isEnding = false;
  readonly #releases: ReleaseOperator | undefined;

  constructor(process: SimProcess, transport: Transport, wanted: Wanted) {
    this.#process = process;
    this.#wanted = wanted;
    this.#workload = wanted.workload;
    this.#steering = wanted.steering;
    this.#client = createClient(OperatorService, transport);
    this.#keys = createClient(KeyService, transport);
    this.#actors = wanted.actors;
    const { release } = wanted;
    const ask = <Answer>(what: string, call: () => Promise<Answer>): Promise<Answer> => this.#ask(what, call);
    const ports = { ask, isOver: () => this.#isEnding };
    this.#releases = release && new ReleaseOperator(process, transport, release, ports);
    this.#hasKeys = wanted.workload.batches.flat().some(({ key }) => key !== "");
  }

  /** The run is complete, or cancelled, and nothing more is done about it. */
  get isDone(): boolean {
    return this.#isDone;
  }

  async work(): Promise<void> {
    const releasing = this.#releases?.work();
    await Promise.all([this.#bringIn(), this.#steer()]);
    await this.#seeToTheEnd();
    this.#isEnding = true;
    await releasing;
    // While the end of the release was waited for, it may have gone back to before the end that was seen.
    while (this.#wentBack) await this.#seeToTheEnd();
    this.#isDone = true;
  }

  /** A copy took the store's place that lacks some of what was answered: all items are submitted once more. */
  storeWentBack(): void {
    [this.#wentBack, this.#hasEverGoneBack] = [true, true];
    if (!this.#isDone) return;
    this.#isDone = false;
    this.#seeToTheEnd().then(() => (this.#isDone = true), this.#wanted.fail);
  }

  /** Since the store last went back it was told that the run is sealed, perhaps by a call of before, and takes no items any more. */
  get isShut(): boolean {
    return this.#isShut;
  }

  /** The run's last release, as an operator sees it; undefined where there is none. */
  async latestRelease(): Promise<Release | undefined> {
    return this.#releases?.latest();
  }

  async #seeToTheEnd(): Promise<void> {
    const { failed } = await this.#waitForEnd();
    if (!this.#steering.retries || failed === 0 || this.#hasCancelled) return;
    await this.#retry();
    await this.#waitForEnd();
  }

  async #bringIn(): Promise<void> {
    this.#isShut = false;
    try {
      await this.#unlessCancelled(async () => {
        await this.#submit();
        if (happens(this.#process.random, 0.2)) {
          const added = await this.#submit();
          if (added > 0 && !this.#wentBack)
            throw new Violation(`${added} items of an edited file that was not edited are new`);
        }
        await this.#ask("seal", () => this.#client.seal({}));
      });
    } catch (error) {
      if (!(error instanceof RolloutError) || !this.#hasEverGoneBack) throw error;
      if (error.code === "run_sealed") this.#isShut = true;
      // The submission was begun before.
      else if (error.code === "request_invalid") this.#wentBack = true;
      else throw error;
    }
  }

  /** A few decisions, one after the other, at any time. */
  async #steer(): Promise<void> {
    const { clock, random } = this.#process;
    const { pauses, retries, cancels } = this.#steering;
    const pausing = this.#hasKeys ? ["pause", "pause keys"] : ["pause"];
    const choices = [...(pauses ? pausing : []), ...(retries ? ["retry"] : [])];
    for (let left = choices.length === 0 ? 0 : between(random, 0, STEPS_MAX); left > 0; left--) {
      await sleep(clock, between(random, 0, STEP_MAX_MS));
      const choice = choices[Math.floor(random.unit() * choices.length)];
      if (choice === "pause") await this.#pauseFor(between(random, 0, PAUSED_MAX_MS));
      else if (choice === "pause keys") await this.#pauseKeysFor(between(random, 0, PAUSED_MAX_MS));
      else await this.#retry();
    }
    if (!cancels) return;
    await sleep(clock, between(random, 0, CANCEL_MAX_MS));
    this.#hasCancelled = true;
    await this.#ask("cancel", () => this.#client.cancel({}));
  }

  async #pauseFor(durationMs: number): Promise<void> {
    await this.#ask("pause", () => this.#client.pause({ reason: "lunch" }));
    await sleep(this.#process.clock, durationMs);
    await this.#resume();
  }

  async #resume(): Promise<void> {
    await this.#unlessCancelled(() => this.#ask("resume", () => this.#client.resume({})));
  }

  async #pauseKeysFor(durationMs: number): Promise<void> {
    const { clock, random } = this.#process;
    const all = this.#workload.batches.flat().map(({ key }) => key);
    const keys = [...new Set(all)].filter((key) => key !== "" && happens(random, 0.5));
    for (const key of keys) this.#wanted.pauses(key);
    await this.#steerKeys("pause", KeyAction.PAUSE, keys);
    await sleep(clock, durationMs);
    await this.#steerKeys("resume", KeyAction.RESUME, keys);
  }

  async #steerKeys(what: string, action: KeyAction, keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return;
    this.#process.say(`asks to ${what} ${keys.join(" ")}`);
    await this.#ask(`${what} keys`, () => this.#keys.steerKeys({ action, keys: [...keys] }));
  }

  /** Everything that has failed. */
  async #retry(): Promise<void> {
    for (let after = ""; ;) {
      const answer = await this.#ask("retry", () => this.#client.retry({ after }));
      this.#process.say(`takes ${answer.retried} back`);
      ({ after } = answer);
      if (after === "") return;
    }
  }

  async #waitForEnd(): Promise<{ readonly failed: number }> {
    for (;;) {
      if (this.#wentBack) {
        this.#process.say("brings everything in again");
        this.#wentBack = false;
        await this.#bringIn();
      }
      const { state, pending, running, done, failed } = await this.#ask("look", () => seenRun(this.#client));
      this.#process.say(`sees state ${state}: ${pending} ${running} ${done} ${failed}`);
      if (this.#isOver(state)) return { failed };
      // A call to pause it that was given up has come late.
      if (state === RunState.PAUSED) await this.#resume();
      if (this.#hasKeys) await this.#letGoOn();
      await sleep(this.#process.clock, LOOK_EVERY_MS);
    }
  }

  /** Keys that are parked go on: those that are paused, and some of those with an item that has failed, without it. */
  async #letGoOn(): Promise<void> {
    const { random } = this.#process;
    const parked = await this.#ask("list keys", () => this.#keys.listKeys({ phases: [KeyPhase.PARKED] }));
    const keys = parked.keys.map(({ key }) => key);
    // A call to pause them that was given up may have come late.
    if (this.#steering.pauses) await this.#steerKeys("resume", KeyAction.RESUME, keys);
    // Actions park no key, and outlive their actors: nobody lists those that have failed.
    const all = this.#actors.length === 0 ? keys : this.#actors;
    const without = all.filter(() => happens(random, 0.5));
    for (const key of without) this.#wanted.skips(key);
    await this.#steerKeys("skip", KeyAction.SKIP, without);
  }

  #isOver(state: RunState | undefined): boolean {
    return !this.#wentBack && (state === RunState.COMPLETE || state === RunState.CANCELLED);
  }

  async #unlessCancelled(what: () => Promise<unknown>): Promise<void> {
    try {
      await what();
    } catch (error) {
      const isRefused = error instanceof RolloutError && error.code === "run_cancelled";
      if (!isRefused || !this.#hasCancelled) throw error;
    }
  }

  /** All batches under a new submission; how many items were new. */
  async #submit(): Promise<number> {
    const { clock, random } = this.#process;
    const submissionId = ulidToBytes(newUlid<RunId>(clock, random));
    let total = 0;
    for (const [at, batch] of this.#workload.batches.entries()) {
      const items = batch.map(({ payload, priority, key }) => ({ payload, priority, key }));
      const plugin = this.#releases === undefined ? "" : PLUGIN;
      const request = { submissionId, batchNumber: BigInt(at + 1), taskDigest: TASK_DIGEST, plugin, items };
      const { added } = await this.#ask(`submit ${at + 1}`, () => this.#client.submit(request));
      total += Number(added);
      await sleep(clock, between(random, 0, PAUSE_MAX_MS));
    }
    return total;
  }

  async #ask<Answer>(what: string, call: () => Promise<Answer>): Promise<Answer> {
    const { clock, random } = this.#process;
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof RolloutError)) throw error;
        if (error.row.retry === "never" && !UNREACHABLE.has(error.code)) throw error;
        this.#process.say(`asks again to ${what}: ${error.code}`);
        await sleep(clock, between(random, AGAIN_MIN_MS, AGAIN_MAX_MS));
      }
    }
  }
}
