// Two or three workers and their coordinator, and between them every delivery in the hand of a scheduler: the real reactor with
// its ledger and its service on one side, the real session, backlog and outbox of a worker on the other. Nothing moves by itself,
// so that whoever drives it can try every order.
//
// Keeps true: the same steps give the same run. After each step the state of the coordinator is sane, nothing was executed
// twice, and what a worker executes is what the ledger says that it has.
import assert from "node:assert/strict";
import { DONE_PREFIX } from "../../../src/storage/keys.ts";
import { texts, World } from "../../support/world.ts";
import { RaceCoordinator } from "./race-coordinator.ts";
import { RaceWorker } from "./race-worker.ts";

export interface RaceOptions {
  readonly workers: readonly { readonly slots: number; readonly prefetch: number }[];
  readonly items: number;
  /** How often what nobody wishes for may happen: a lost connection, a new coordinator. */
  readonly mishaps: number;
  /** How often time may pass, which lets the coordinator steal again. */
  readonly pauses: number;
}

/** Enough for what was assigned to be old enough to be stolen, and for a victim to be asked again. */
const PAUSE_MS = 600;

export class StealRace {
  readonly #world: World;
  readonly #coordinator: RaceCoordinator;
  readonly #workers: readonly RaceWorker[];
  readonly #options: RaceOptions;
  #mishapsLeft: number;
  #pausesLeft: number;

  private constructor(world: World, options: RaceOptions) {
    this.#world = world;
    this.#options = options;
    this.#mishapsLeft = options.mishaps;
    this.#pausesLeft = options.pauses;
    this.#coordinator = new RaceCoordinator(world);
    this.#workers = options.workers.map((size, at) => new RaceWorker(at + 1, size, this.#coordinator));
  }

  /** The first worker has as many of the items as it can hold, the others have nothing to do, and a steal may begin. */
  static async start(options: RaceOptions): Promise<StealRace> {
    const world = await World.start({ isChecked: false });
    const race = new StealRace(world, options);
    const [victim] = race.#workers;
    assert(victim !== undefined);
    await race.#join(victim);
    await world.submit(texts(options.items));
    await race.#deliverAll();
    for (const worker of race.#workers) if (worker !== victim) await race.#join(worker);
    await race.#passTime();
    return race;
  }

  /** Events that can happen now: those under way first, then those that time brings, then faults. Empty at the end. */
  get steps(): string[] {
    const expected = this.#workers.flatMap((worker) => [
      ...(this.#coordinator.hears(worker.id) ? [`up ${worker.number}`] : []),
      ...(worker.canHear ? [`down ${worker.number}`] : []),
      ...worker.executing.map((item) => `end ${worker.number} ${item}`),
      ...(worker.canReconnect ? [`reconnect ${worker.number}`] : []),
    ]);
    if (expected.length === 0) return [];
    const pause = this.#pausesLeft > 0 ? ["pause"] : [];
    if (this.#mishapsLeft === 0) return [...expected, ...pause];
    const cuts = this.#workers.flatMap(({ number, isConnected }) =>
      isConnected ? [`cut ${number}`, `cut late ${number}`] : [],
    );
    const crash = this.#workers.flatMap(({ id, number }) =>
      this.#coordinator.hears(id) ? [`crash after ${number}`] : [],
    );
    return [...expected, ...pause, ...cuts, "restart", ...crash];
  }

  async take(step: string): Promise<void> {
    const words = step.split(" ");
    const worker = this.#workers[Number(words.at(words[0] === "end" ? 1 : -1)) - 1];
    await this.#perform(step, words[0], worker, words.at(-1) ?? "");
    await this.#settle();
    this.#check();
  }

  /** Goes on until nothing can happen any more, with nothing but what is expected. */
  async finish(): Promise<void> {
    this.#mishapsLeft = 0;
    for (let [step] = this.steps; step !== undefined; [step] = this.steps) await this.take(step);
    await this.checkEnd();
  }

  /** The workers and the coordinator as they stand and what is between them, in a word. */
  get fingerprint(): string {
    const { running } = this.#world.state.ledger;
    const rows = [...running.values()].map(
      ({ place, row }) => `${place} ${row.context.attempt} ${row.context.worker.at(-1) ?? ""}`,
    );
    return [
      ...this.#workers.map((worker) => worker.fingerprint),
      ...rows.sort(),
      this.#coordinator.fingerprint,
      this.#mishapsLeft,
      this.#pausesLeft,
    ].join("\n");
  }

  /** How many items have changed hands without being executed. */
  get stolen(): number {
    return this.#world.events.events
      .filter(({ topic }) => topic === "work_stolen")
      .reduce((sum, { payload }) => sum + ("items" in payload ? payload.items : 0), 0);
  }

  /** When nothing can happen any more: every item was executed once, and has its one result. */
  async checkEnd(): Promise<void> {
    const { state } = this.#world;
    assert.equal(this.#executions().length, this.#options.items, "every item was executed");
    const done = await this.#world.countUnder(DONE_PREFIX);
    assert.equal(done, this.#options.items, "every item has one result");
    assert.deepEqual([state.ledger.running.size, state.ledger.tally.pending], [0, 0], "nothing is left over");
  }

  async #perform(
    step: string,
    verb: string | undefined,
    worker: RaceWorker | undefined,
    item: string,
  ): Promise<void> {
    const coordinator = this.#coordinator;
    if (verb === "pause") {
      this.#pausesLeft--;
      return this.#passTime();
    }
    if (verb === "restart") {
      this.#mishapsLeft--;
      return coordinator.restart();
    }
    assert(worker !== undefined, `no such step: ${step}`);
    switch (verb) {
      case "up":
        return coordinator.hear(worker.id);
      case "down":
        return worker.hear();
      case "end":
        return worker.end(item);
      case "reconnect":
        return worker.reconnect();
      case "cut":
        this.#mishapsLeft--;
        worker.cut();
        await this.#settle();
        // Frames of the old stream that the coordinator had not read are lost with it, or come after the new one has begun.
        return coordinator.forget(worker.id, { keepsInbox: step.startsWith("cut late") });
      case "crash":
        this.#mishapsLeft--;
        return coordinator.crashAfterHearing(worker.id);
      default:
        throw new Error(`no such step: ${step}`);
    }
  }

  async #join(worker: RaceWorker): Promise<void> {
    await this.#world.step(worker.beatInput());
    await worker.open();
    await this.#deliverAll();
  }

  async #deliverAll(): Promise<void> {
    for (let moved = true; moved;) {
      await this.#settle();
      moved = false;
      for (const worker of this.#workers) {
        if (this.#coordinator.hears(worker.id)) {
          moved = true;
          await this.#coordinator.hear(worker.id);
        } else if (worker.canHear) {
          moved = true;
          worker.hear();
        }
      }
    }
  }

  async #passTime(): Promise<void> {
    this.#world.pass(PAUSE_MS);
    await this.#world.step(...this.#workers.map((worker) => worker.beatInput()), { kind: "scan" });
    await this.#world.settle();
  }

  async #settle(): Promise<void> {
    await this.#world.settle();
    for (const worker of this.#workers) await worker.settle();
  }

  #executions(): string[] {
    return this.#workers.flatMap((worker) => worker.begun);
  }

  #check(): void {
    const executions = this.#executions();
    assert.equal(new Set(executions).size, executions.length, "an item was executed twice");
    for (const worker of this.#workers) {
      for (const { itemId, attempt } of worker.running) {
        const context = this.#world.contextOf({ id: itemId });
        assert(context !== undefined, "what is executed is what the ledger calls running");
        assert.deepEqual([context.worker, context.attempt], [worker.id, attempt], "and by whom it says");
      }
      assert.deepEqual(worker.fatal, []);
    }
  }
}
