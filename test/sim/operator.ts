// The operator of the run: submits its batches, seals it, and looks until it is complete. Beside that, in some runs, pauses and
// resumes it, takes failed items back, or cancels it. Asks again when nobody answers.
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import { sleep } from "../../src/base/clock.ts";
import { RolloutError } from "../../src/base/errors.ts";
import { newUlid, ulidToBytes } from "../../src/base/ids.ts";
import type { RunId } from "../../src/base/ids.ts";
import { RunService, RunState } from "../../src/gen/rollout/v1/run_pb.ts";
import type { SimProcess } from "./process.ts";
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

export class Operator {
  readonly #process: SimProcess;
  readonly #workload: Workload;
  readonly #steering: Steering;
  readonly #client;
  #isDone = false;
  /** It may be that the run is cancelled. */
  #hasCancelled = false;

  constructor(process: SimProcess, transport: Transport, wanted: { workload: Workload; steering: Steering }) {
    this.#process = process;
    this.#workload = wanted.workload;
    this.#steering = wanted.steering;
    this.#client = createClient(RunService, transport);
  }

  /** The run is complete, or cancelled, and nothing more is done about it. */
  get isDone(): boolean {
    return this.#isDone;
  }

  async work(): Promise<void> {
    await Promise.all([this.#bringIn(), this.#steer()]);
    const { failed } = await this.#waitForEnd();
    if (this.#steering.retries && failed > 0 && !this.#hasCancelled) {
      await this.#retry();
      await this.#waitForEnd();
    }
    this.#isDone = true;
  }

  async #bringIn(): Promise<void> {
    await this.#unlessCancelled(async () => {
      await this.#submit();
      if (happens(this.#process.random, 0.2)) {
        const added = await this.#submit();
        if (added > 0) throw new Violation(`${added} items of an edited file that was not edited are new`);
      }
      await this.#ask("seal", () => this.#client.seal({}));
    });
  }

  /** A few decisions, one after the other, at any time. */
  async #steer(): Promise<void> {
    const { clock, random } = this.#process;
    const { pauses, retries, cancels } = this.#steering;
    const choices = [...(pauses ? ["pause"] : []), ...(retries ? ["retry"] : [])];
    for (let left = choices.length === 0 ? 0 : between(random, 0, STEPS_MAX); left > 0; left--) {
      await sleep(clock, between(random, 0, STEP_MAX_MS));
      const choice = choices[Math.floor(random.unit() * choices.length)];
      if (choice === "pause") await this.#pauseFor(between(random, 0, PAUSED_MAX_MS));
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

  /** Everything that has failed. */
  async #retry(): Promise<void> {
    for (let after = ""; ;) {
      const answer = await this.#ask("retry", () => this.#client.retry({ after }));
      this.#process.say(`takes ${answer.retried} back`);
      ({ after } = answer);
      if (after === "") return;
    }
  }

  async #waitForEnd(): Promise<{ readonly failed: bigint }> {
    for (;;) {
      const { state, pending, running, done, failed } = await this.#ask("look", () =>
        this.#client.getRun({}),
      );
      this.#process.say(`sees state ${state}: ${pending} ${running} ${done} ${failed}`);
      if (state === RunState.COMPLETE || state === RunState.CANCELLED) return { failed };
      // A call to pause it that was given up has come late.
      if (state === RunState.PAUSED) await this.#resume();
      await sleep(this.#process.clock, LOOK_EVERY_MS);
    }
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
      const items = batch.map(({ payload, priority }) => ({ payload, priority }));
      const request = { submissionId, batchNumber: BigInt(at + 1), taskDigest: TASK_DIGEST, items };
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
        if (error.row.retry === "never") throw error;
        this.#process.say(`asks again to ${what}: ${error.code}`);
        await sleep(clock, between(random, AGAIN_MIN_MS, AGAIN_MAX_MS));
      }
    }
  }
}
