// Whoever wants the run: submits its batches, seals it, and looks until it is complete. Asks again when nobody answers.
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import { sleep } from "../../src/base/clock.ts";
import { RolloutError } from "../../src/base/errors.ts";
import { newUlid, ulidToBytes } from "../../src/base/ids.ts";
import type { RunId } from "../../src/base/ids.ts";
import { RunService, RunState } from "../../src/gen/rollout/v1/run_pb.ts";
import type { SimProcess } from "./process.ts";
import { between, happens, Violation } from "./world.ts";
import { TASK_DIGEST } from "./workload.ts";
import type { Workload } from "./workload.ts";

const PAUSE_MAX_MS = 1_500;
const AGAIN_MIN_MS = 50;
const AGAIN_MAX_MS = 600;
const LOOK_EVERY_MS = 400;

export class Operator {
  readonly #process: SimProcess;
  readonly #workload: Workload;
  readonly #client;
  #isDone = false;

  constructor(process: SimProcess, transport: Transport, workload: Workload) {
    this.#process = process;
    this.#workload = workload;
    this.#client = createClient(RunService, transport);
  }

  /** The run is complete. */
  get isDone(): boolean {
    return this.#isDone;
  }

  async work(): Promise<void> {
    const { clock, random } = this.#process;
    await this.#submit();
    if (happens(random, 0.2)) {
      const added = await this.#submit();
      if (added > 0) throw new Violation(`${added} items of an edited file that was not edited are new`);
    }
    await this.#ask("seal", () => this.#client.seal({}));
    for (;;) {
      const { state, pending, running, done, failed } = await this.#ask("look", () =>
        this.#client.getRun({}),
      );
      this.#process.say(`sees state ${state}: ${pending} ${running} ${done} ${failed}`);
      if (state === RunState.COMPLETE) break;
      await sleep(clock, LOOK_EVERY_MS);
    }
    this.#isDone = true;
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
