// The machine of a coordinator, and the processes that stand or lead on it, one after the other: real ones, on the simulated world.
// Two may live at once on a machine with a ledger of its own, when the older one is stopped and does not know that it was followed.
import { newUlid } from "../../src/base/ids.ts";
import type { IncarnationId, RunId } from "../../src/base/ids.ts";
import { seededRandom } from "../../src/base/random.ts";
import { assert } from "../../src/base/assert.ts";
import type { CoordinatorOptions } from "../../src/coordinator/coordinator-options.ts";
import { Coordinator } from "../../src/coordinator/coordinator.ts";
import type { LeaseTiming } from "../../src/coordinator/lead/elector-storage.ts";
import { StaticElector } from "../../src/coordinator/lead/elector.ts";
import type { LeaderElector } from "../../src/coordinator/lead/elector.ts";
import { StorageLease } from "../../src/coordinator/lead/lease.ts";
import { replay } from "../../src/coordinator/replay.ts";
import { KEY_DEFAULTS } from "../../src/coordinator/keys/key-settings.ts";
import type { CoordinatorState } from "../../src/coordinator/turn/state.ts";
import { sanityCheck } from "../support/sanity-check.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import type { Entry, Store } from "../../src/storage/store.ts";
import { LIVENESS } from "../support/world.ts";
import { difference } from "../support/persisted-state.ts";
import type { LedgerHome, OpenLedger } from "./ledger-home.ts";
import type { NodeOptions } from "./node.ts";
import { SimNode } from "./node.ts";
import { RolloutError } from "../../src/base/errors.ts";
import { Post } from "./post.ts";
import type { SimProcess } from "./process.ts";
import type { Settings } from "./settings.ts";
import type { SimFleet } from "./sim-fleet.ts";
import { SimMemory } from "./sim-memory.ts";
import { Services } from "./sim-transport.ts";
import { eventsOf, logOf } from "./voice.ts";
import type { Witness } from "./witness.ts";
import { Violation } from "./world.ts";

export const BUDGETS = { maxAttempts: 3, maxLost: 5 };
const SIM_LIVENESS = { ...LIVENESS, removeAfterMs: 20_000 };
/** Few, so that the scrub of the ledger is under way while things happen. */
const SCRUB_ROWS = 5;
const OLD_LEADER_MAX_MS = 2_000;
const RESTART_MS = [50, 2_500] as const;
const LONGER_THAN_A_LEASE_MS = 5_500;
const EVERYTHING = { from: "!", to: "~", limit: 1_000_000 };

export interface CoordinatorNodeOptions extends NodeOptions {
  readonly witness: Witness;
  readonly settings: Settings;
  readonly home: LedgerHome;
  readonly runId: RunId;
  readonly name: string;
  readonly clockRate: number;
  readonly timing: LeaseTiming;
  /** Whether its host keeps what it has seen of the store. */
  readonly remembers: boolean;
  /** The store as the coordinator sees it. */
  readonly store: (store: Store, process: SimProcess) => Store;
  /** The elector as the coordinator sees it. */
  readonly elector: (elector: LeaderElector) => LeaderElector;
  /** Told of the state after each turn, before anybody looks at it. */
  readonly inspect: (state: CoordinatorState) => void;
  /** Undefined for a run without one. */
  readonly fleet: SimFleet | undefined;
}

interface Leading {
  readonly ledger: OpenLedger;
  /** Where the ledger is shared. */
  post: Post | undefined;
  coordinator: Coordinator | undefined;
  services: Services | undefined;
  state: CoordinatorState | undefined;
}

const PARTITIONS = 16;

/** Short, so that even a short run has several. */
const CHECKPOINT_INTERVAL_MS = 400;

export class CoordinatorNode extends SimNode {
  readonly #options: CoordinatorNodeOptions;
  readonly #all = new Map<SimProcess, Leading>();
  readonly #memory = new SimMemory();
  /** A person has set storage.on_rollback, after a process has halted. */
  #acceptsRollback = false;

  constructor(options: CoordinatorNodeOptions) {
    super(options, options.name, { restartMs: RESTART_MS, clockRate: options.clockRate });
    this.#options = options;
  }

  servicesOf(process: SimProcess): Services | undefined {
    return this.#all.get(process)?.services;
  }

  get #latest(): Leading | undefined {
    return this.process && this.#all.get(this.process);
  }

  protected override run(process: SimProcess): void {
    const { home } = this.#options;
    const ledger = home.open(process);
    const leading: Leading = {
      ledger,
      ...{ coordinator: undefined, services: undefined, state: undefined, post: undefined },
    };
    this.#all.set(process, leading);
    process.onDeath(() => this.#all.delete(process));
    const options = this.#coordinatorOptions(process, leading);
    if (home.isShared) this.#holdPost(process, leading, options);
    else
      Coordinator.start(options).then(
        (coordinator) => {
          leading.coordinator = coordinator;
          this.#leads(process, coordinator);
          this.#serve(process, leading, new Services(coordinator.routes));
        },
        (error: unknown) => this.died(process, error),
      );
  }

  /** Each allocation is a worker of its own, which is remembered for a while. */
  get #workersMax(): number {
    return this.#options.fleet === undefined ? 10 : 500;
  }

  #holdPost(process: SimProcess, leading: Leading, coordinator: CoordinatorOptions): void {
    const { settings, network, elector, timing } = this.#options;
    const { incarnation, store } = coordinator;
    const post = new Post({
      ...{ process, incarnation, coordinator },
      attendance: {
        ...{ address: this.machine.name, timing, removeAfterMs: SIM_LIVENESS.removeAfterMs },
        failureTimeoutMs: SIM_LIVENESS.coordinatorFailureTimeoutMs,
        standing: { weight: 1, quorum: settings.quorum },
        hears: (address) => network.reaches(process, address),
      },
      newElector: () => {
        const own = leading.ledger.elector(store, incarnation);
        assert(own !== undefined, "a ledger that is shared has electors");
        return elector(this.#confirming(process, own));
      },
      serve: (services) => this.#serve(process, leading, services),
      onLead: (won) => this.#leads(process, won),
    });
    leading.post = post;
    post.hold().then(
      () => this.exit(process, "exits"),
      (error: unknown) => this.died(process, error),
    );
  }

  /** The elector, as the witness hears it: each answer by which a verdict may act. */
  #confirming(process: SimProcess, elector: LeaderElector): LeaderElector {
    const { witness } = this.#options;
    return {
      campaign: (campaign) => elector.campaign(campaign),
      mayAct: () => elector.mayAct(),
      resign: () => elector.resign(),
      isLeader: async (options) => {
        const leads = await elector.isLeader(options);
        if (leads && options?.doubted !== true) witness.releases.confirmed(process);
        return leads;
      },
    };
  }

  #leads(process: SimProcess, { epoch }: Coordinator): void {
    process.say(`leads, epoch ${epoch}`);
    this.#options.witness.leads(process, epoch);
  }

  #serve(process: SimProcess, leading: Leading, services: Services): void {
    const isFirst = leading.services === undefined;
    leading.services = services;
    if (isFirst) this.#options.network.listen(process);
  }

  #coordinatorOptions(process: SimProcess, leading: Leading): CoordinatorOptions {
    const { settings, runId, home } = this.#options;
    const { clock, random } = process;
    const incarnation = newUlid<IncarnationId>(clock, random);
    const { fleet } = this.#options;
    const watched = fleet?.witness.watching(leading.ledger.store) ?? leading.ledger.store;
    const store = this.#options.store(watched, process);
    return {
      ...(fleet && { fleets: fleet.ports(process) }),
      ...(this.#options.remembers && { memory: this.#memory, acceptsRollback: this.#acceptsRollback }),
      runId,
      incarnation,
      store,
      ownStore: new MemoryStore(),
      liveness: SIM_LIVENESS,
      workersMax: this.#workersMax,
      budgets: BUDGETS,
      keys: {
        ...KEY_DEFAULTS,
        totalPartitions: PARTITIONS,
        virtualNodes: 16,
        skipsFailed: settings.skipsFailed,
        checkpointIntervalMs: settings.hasCheckpoints ? CHECKPOINT_INTERVAL_MS : undefined,
      },
      inboxMax: settings.inboxMax,
      scrubRows: SCRUB_ROWS,
      clock,
      random,
      events: eventsOf(process, (topic, payload) => this.#said(process, topic, payload)),
      ...(!home.isShared && {
        elector: this.#confirming(process, new StaticElector(new StorageLease(store, incarnation), clock)),
      }),
      log: logOf(process),
      sign: undefined,
      advertisedAddress: "sim:1",
      abortFenced: ({ reason }) => this.#fenced(process, reason),
      onFatal: (error) => this.died(process, error),
      inspect: (state) => {
        leading.state = state;
        this.#options.inspect(state);
        // One that stood still since its claim has read rows while another leader wrote them; it may not act on what it knows.
        if (!home.isShared || state.epoch === this.#options.witness.epoch) this.#sane(state);
        this.#options.witness.decided(state, process);
      },
    };
  }

  /** The epoch under which the machine leads, as far as it knows. */
  get epoch(): number | undefined {
    const { coordinator, post } = this.#latest ?? {};
    return (post?.coordinator ?? coordinator)?.epoch;
  }

  /** All processes of the machine are gone, and what was not synced on its own disk may be. */
  losePower(): void {
    const { world, network, witness, home } = this.#options;
    if (home.isShared) {
      if (this.process !== undefined) this.goDark(this.process);
      return;
    }
    for (const process of [...this.#all.keys()]) {
      process.end("loses its power");
      network.goDark(process);
    }
    world.after(0, () => {
      this.machine.disk = this.machine.disk.losePower(world.random);
      void this.machine.disk.scan(EVERYTHING).then((entries: Entry[]) => witness.powerLost(entries));
    });
    this.startSoon();
  }

  /** Stops the leader, and another one leads over the same ledger. The old one goes on when it is too late. */
  succeed(stoppedForMs: number): void {
    const { process } = this;
    if (process === undefined || process.isStopped || this.epoch === undefined) return;
    if (this.#options.home.isShared) return this.stopFor(Math.max(stoppedForMs, LONGER_THAN_A_LEASE_MS));
    this.stopFor(stoppedForMs);
    process.say("has a successor");
    this.start();
  }

  /** As by SIGTERM. */
  restart(): void {
    const { process } = this;
    const { coordinator, post } = this.#latest ?? {};
    if (process === undefined || process.isStopped) return;
    process.say("is told to stop");
    post?.stop();
    void coordinator?.stop().then(
      () => this.exit(process, "exits"),
      (error: unknown) => this.died(process, error),
    );
  }

  /** An operator asks it to make room for another. */
  stepDown(): void {
    const { process } = this;
    if (process?.isStopped !== false) return;
    process.say("is asked to step down");
    this.#latest?.post?.stepDown();
  }

  heal(): void {
    for (const process of [...this.#all.keys()]) {
      process.goOn();
      // One that was followed and has not noticed yet is not waited for.
      if (!this.isLatest(process))
        this.#options.world.after(OLD_LEADER_MAX_MS, () => this.exit(process, "is killed"));
    }
  }

  /** C4: what a new leader would read is what this one has in memory. Nothing is checked when the two cannot be compared now. */
  async checkReplay(): Promise<void> {
    const { state, ledger } = this.#latest ?? {};
    const { witness, home, fleet } = this.#options;
    const { process } = this;
    if (
      process === undefined ||
      state === undefined ||
      ledger?.isSettled() !== true ||
      state.epoch !== witness.epoch
    )
      return;
    const replayed = await replay(home.rows(this.machine), {
      liveness: SIM_LIVENESS,
      workersMax: this.#workersMax,
      budgets: BUDGETS,
      random: seededRandom(0),
      epoch: state.epoch,
      nowMs: 0,
      ...(fleet && { openFleets: (store: Store) => fleet.ports(process).open(store, state.epoch) }),
    });
    const differs = difference(replayed, state);
    if (differs !== undefined) throw new Violation(`C4: replay differs from the live state in ${differs}`);
  }

  #said(process: SimProcess, topic: string, payload: object): void {
    const { witness } = this.#options;
    const goesBack = topic === "store_rolled_back" && witness.hasGoneBack;
    if (goesBack && "seen_epoch" in payload) witness.lead.halted(process, Number(payload.seen_epoch));
    witness.event(topic, payload);
  }

  /** One that halts because its store went back is started again by a person who accepts that, if it is true. */
  protected override died(process: SimProcess, error: unknown): void {
    const { witness } = this.#options;
    const code = error instanceof RolloutError ? error.code : "";
    const isHalted = code === "store_rolled_back" && witness.hasGoneBack;
    // It was opened when somebody had begun a store that a promotion has lost: nothing was ever answered there.
    const isNewAgain = code === "store_corrupt" && witness.leaderships === 0;
    if (!process.isAlive || !(isHalted || isNewAgain)) return super.died(process, error);
    this.#acceptsRollback ||= isHalted;
    this.end(process, `halts: ${code}`);
  }

  #sane(state: CoordinatorState): void {
    try {
      sanityCheck(state);
    } catch (error) {
      this.#options.world.violate(error);
    }
  }

  #fenced(process: SimProcess, reason: string): void {
    if (this.isLatest(process) && !this.#options.home.isShared)
      this.#options.world.violate(new Violation(`${process.name} is fenced, and nobody else leads`));
    this.exit(process, `is fenced: ${reason}`);
  }
}
