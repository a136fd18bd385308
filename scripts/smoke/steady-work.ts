// Work that does not run out: more is submitted whenever little is left. Questions wait for nobody: while no coordinator leads there is no
// answer.
import { sleep, systemClock } from "../../src/base/clock.ts";
import type { CoordinatorSummary, Handover } from "../../src/client/coordinators.ts";
import type { RunStatus } from "../../src/client/run-status.ts";
import type { RolloutClient } from "../../src/compose/rollout-client.ts";

const WAVE = 600;
const LOW = 600;
const LOOK_EVERY_MS = 250;

export class SteadyWork {
  readonly #client: RolloutClient;
  items = 0;

  constructor(client: RolloutClient) {
    this.#client = client;
  }

  /** Submits until that has ended, and then says that nothing more will come. */
  async during(end: Promise<void>): Promise<void> {
    const over = new AbortController();
    const ended = end.finally(() => over.abort());
    ended.catch(() => undefined);
    while (!over.signal.aborted) {
      const status = await this.status();
      if (status !== undefined && status.pending < LOW) await this.#submit(over.signal);
      await sleep(systemClock, LOOK_EVERY_MS, over.signal);
    }
    await ended;
    await this.#client.seal();
  }

  /** Undefined while nobody answers. */
  status(): Promise<RunStatus | undefined> {
    return this.#client.status().catch(() => undefined);
  }

  coordinators(): Promise<readonly CoordinatorSummary[]> {
    return this.#client.coordinators().catch(() => []);
  }

  async workersAlive(): Promise<number> {
    const workers = await this.#client.workers().catch(() => []);
    return workers.filter(({ liveness, state }) => liveness === "alive" && state === "ready").length;
  }

  handOver(): Promise<Handover> {
    return this.#client.handOver();
  }

  /** The same again until it is taken: items are known by their content. */
  async #submit(over: AbortSignal): Promise<void> {
    const wave = Array.from({ length: WAVE }, (_, number) => ({ item: this.items + number }));
    this.items += WAVE;
    for (;;) {
      const isTaken = await this.#client.submit(wave).then(
        () => true,
        () => false,
      );
      if (isTaken) return;
      if (over.aborted) throw new Error("a submission was not taken");
      await sleep(systemClock, LOOK_EVERY_MS);
    }
  }
}
