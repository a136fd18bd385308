// The machine of the coordinator, and the processes that lead on it, one after the other: real ones, on the simulated world. Two
// may live at once, when the older one is stopped and does not know that it was followed.
import { newUlid } from "../../src/base/ids.ts";
import type { IncarnationId, RunId } from "../../src/base/ids.ts";
import { RolloutError } from "../../src/base/errors.ts";
import { seededRandom } from "../../src/base/random.ts";
import { Coordinator } from "../../src/coordinator/coordinator.ts";
import { replay } from "../../src/coordinator/replay.ts";
import type { CoordinatorState } from "../../src/coordinator/turn/state.ts";
import { sanityCheck } from "../../src/coordinator/turn/state.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import { PowerLossStore } from "../support/power-loss-store.ts";
import type { Entry, Store } from "../../src/storage/store.ts";
import { LIVENESS } from "../support/reactor-harness.ts";
import { difference } from "./difference.ts";
import type { Network } from "./network.ts";
import type { Machine } from "./process.ts";
import { SimProcess } from "./process.ts";
import { ProcessStore } from "./process-store.ts";
import type { CarryOut, DiskWeather } from "./process-store.ts";
import type { Settings } from "./settings.ts";
import { Services } from "./sim-transport.ts";
import { eventsOf, logOf } from "./voice.ts";
import type { Witness } from "./witness.ts";
import type { World } from "./world.ts";
import { between, Violation } from "./world.ts";

export const BUDGETS = { maxAttempts: 3, maxLost: 5 };
const SIM_LIVENESS = { ...LIVENESS, removeAfterMs: 20_000 };
/** Few, so that the scrub of the ledger is under way while things happen. */
const SCRUB_ROWS = 5;
const OLD_LEADER_MAX_MS = 2_000;
const RESTART_MIN_MS = 50;
const RESTART_MAX_MS = 2_500;
const EVERYTHING = { from: "!", to: "~", limit: 1_000_000 };

export interface CoordinatorNodeOptions {
  readonly world: World;
  readonly network: Network;
  readonly witness: Witness;
  readonly settings: Settings;
  readonly disk: DiskWeather;
  readonly runId: RunId;
  /** The store as the coordinator sees it. */
  readonly store: (store: Store, process: SimProcess) => Store;
  readonly carryOut: CarryOut;
  /** Told of the state after each turn, before anybody looks at it. */
  readonly inspect: (state: CoordinatorState) => void;
}

interface Leading {
  readonly process: SimProcess;
  readonly store: ProcessStore;
  coordinator: Coordinator | undefined;
  services: Services | undefined;
  state: CoordinatorState | undefined;
}

export class CoordinatorNode {
  readonly machine: Machine;
  readonly #options: CoordinatorNodeOptions;
  #started = 0;
  #latest: Leading | undefined;
  readonly #all = new Map<SimProcess, Leading>();

  constructor(options: CoordinatorNodeOptions) {
    this.#options = options;
    this.machine = { name: "c", disk: new PowerLossStore(), wallOffsetMs: 0, clockRate: 1 };
  }

  /** The process that was started last, while it lives. */
  get process(): SimProcess | undefined {
    return this.#latest?.process.isAlive === true ? this.#latest.process : undefined;
  }

  servicesOf(process: SimProcess): Services | undefined {
    return this.#all.get(process)?.services;
  }

  start(): void {
    const { world, witness, disk, settings, runId, network } = this.#options;
    const process = new SimProcess(world, this.machine, ++this.#started);
    const store = new ProcessStore(
      world,
      process,
      disk,
      (by, batch, outcome) => witness.committed(by, batch, outcome),
      this.#options.carryOut,
    );
    const leading: Leading = {
      process,
      store,
      coordinator: undefined,
      services: undefined,
      state: undefined,
    };
    this.#latest = leading;
    this.#all.set(process, leading);
    process.onDeath(() => this.#all.delete(process));
    process.say("starts");
    const { clock, random } = process;
    Coordinator.start({
      runId,
      incarnation: newUlid<IncarnationId>(clock, random),
      store: this.#options.store(store, process),
      ownStore: new MemoryStore(),
      liveness: SIM_LIVENESS,
      workersMax: 10,
      budgets: BUDGETS,
      inboxMax: settings.inboxMax,
      scrubRows: SCRUB_ROWS,
      clock,
      random,
      events: eventsOf(process),
      log: logOf(process),
      sign: undefined,
      advertisedAddress: "sim:1",
      abortFenced: ({ reason }) => this.#fenced(process, reason),
      onFatal: (error) => this.#died(process, error),
      inspect: (state) => {
        leading.state = state;
        this.#options.inspect(state);
        this.#sane(state);
        this.#options.witness.decided(state);
      },
    }).then(
      (coordinator) => {
        leading.coordinator = coordinator;
        leading.services = new Services(coordinator.routes);
        process.say(`leads, epoch ${coordinator.epoch}`);
        network.listen(process);
      },
      (error: unknown) => this.#died(process, error),
    );
  }

  kill(): void {
    const { process } = this;
    if (process === undefined) return;
    process.end("is killed");
    this.#options.network.hangUp(process);
    this.#startSoon();
  }

  /** All processes of the machine are gone, and what was not synced may be. */
  losePower(): void {
    const { world, network, witness } = this.#options;
    for (const process of [...this.#all.keys()]) {
      process.end("loses its power");
      network.goDark(process);
    }
    world.after(0, () => {
      this.machine.disk = this.machine.disk.losePower(world.random);
      void this.machine.disk.scan(EVERYTHING).then((entries: Entry[]) => witness.powerLost(entries));
    });
    this.#startSoon();
  }

  stopFor(durationMs: number): void {
    const { process } = this;
    if (process === undefined || process.isStopped) return;
    process.stop();
    this.#options.network.stopped(process);
    this.#options.world.after(durationMs, () => process.goOn());
  }

  /** Stops the leader and starts another one over the same store. The old one goes on when it is too late. */
  succeed(stoppedForMs: number): void {
    const { process } = this;
    if (process === undefined || process.isStopped || this.#latest?.coordinator === undefined) return;
    this.stopFor(stoppedForMs);
    process.say("has a successor");
    this.start();
  }

  /** As by SIGTERM. */
  restart(): void {
    const { process } = this;
    const coordinator = this.#latest?.coordinator;
    if (process === undefined || process.isStopped || coordinator === undefined) return;
    process.say("is told to stop");
    void coordinator.stop().then(
      () => {
        process.end("exits");
        this.#options.network.hangUp(process);
        this.#startSoon();
      },
      (error: unknown) => this.#died(process, error),
    );
  }

  heal(): void {
    for (const process of [...this.#all.keys()]) {
      process.goOn();
      // One that was followed and has not noticed yet is not waited for.
      if (process !== this.#latest?.process)
        this.#options.world.after(OLD_LEADER_MAX_MS, () => this.#end(process));
    }
  }

  #end(process: SimProcess): void {
    process.end("is killed");
    this.#options.network.hangUp(process);
  }

  /** C4: what a new leader would read is what this one has in memory. Undefined when it cannot be compared now. */
  async checkReplay(): Promise<void> {
    const { state, store, process } = this.#latest ?? {};
    if (state === undefined || process?.isAlive !== true || store?.isIdle !== true) return;
    const replayed = await replay(this.machine.disk, {
      liveness: SIM_LIVENESS,
      workersMax: 10,
      budgets: BUDGETS,
      random: seededRandom(0),
      epoch: state.epoch,
      nowMs: 0,
    });
    const differs = difference(replayed, state);
    if (differs !== undefined) throw new Violation(`C4: replay differs from the live state in ${differs}`);
  }

  #sane(state: CoordinatorState): void {
    try {
      sanityCheck(state);
    } catch (error) {
      this.#options.world.violate(error);
    }
  }

  #fenced(process: SimProcess, reason: string): void {
    process.end(`is fenced: ${reason}`);
    this.#options.network.hangUp(process);
    if (this.#latest?.process === process)
      this.#options.world.violate(new Violation(`${process.name} is fenced, and nobody else leads`));
  }

  /** A store that cannot say what it wrote ends the process; anything else is a bug. */
  #died(process: SimProcess, error: unknown): void {
    if (!process.isAlive) return;
    const isExpected = error instanceof RolloutError && error.code === "store_write_failed";
    if (!isExpected) this.#options.world.violate(error);
    process.end("ends: its store is broken");
    this.#options.network.hangUp(process);
    if (this.#latest?.process === process) this.#startSoon();
  }

  #startSoon(): void {
    const { world } = this.#options;
    world.after(between(world.random, RESTART_MIN_MS, RESTART_MAX_MS), () => {
      if (this.process === undefined) this.start();
    });
  }
}
