// A room of fleets alone, on a clock of its own: turns that are committed to a store in memory, a provider that is told what to answer, and a run
// in numbers.
import { newUlid } from "../../../../src/base/ids.ts";
import type { WorkerId } from "../../../../src/base/ids.ts";
import { seededRandom } from "../../../../src/base/random.ts";
import type { FleetSettings } from "../../../../src/config/fleet.ts";
import { allocationStateOf } from "../../../../src/coordinator/fleet/allocation.ts";
import type { Fleet } from "../../../../src/coordinator/fleet/fleet.ts";
import { fleetStateOf, liveOf } from "../../../../src/coordinator/fleet/fleet.ts";
import type { Fleets } from "../../../../src/coordinator/fleet/fleets.ts";
import type {
  FleetAnswer,
  FleetQuestion,
  FleetRun,
  FleetWorker,
} from "../../../../src/coordinator/fleet/ports.ts";
import { replayFleets } from "../../../../src/coordinator/fleet/replay-fleets.ts";
import { Turn } from "../../../../src/coordinator/turn/turn.ts";
import type { ListedAllocation, SilentPlace } from "../../../../src/fleet/provider.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";

export const SETTINGS: FleetSettings = {
  ...{
    name: "spot",
    slots: 1,
    min: 0,
    max: 4,
    pollIntervalMs: 1_000,
    startTimeoutMs: 60_000,
    orphanTimeoutMs: 1_800_000,
  },
  ...{ queueTimeoutMs: undefined, idleTimeoutMs: 5_000, finishWithinMs: 0, maxPending: 8 },
  ...{ maxLifetimeMs: undefined, pricePerHour: undefined, maxMachineHours: undefined },
  ...{ maxCost: undefined, maxCostPerHour: undefined, stopAtMs: undefined, advertise: undefined },
  provider: { kind: "exec", command: ["true"], timeoutMs: 1_000, directory: "/" },
};

const STEP_MS = 250;
const BEGUN_MS = Date.UTC(2026, 10, 1);

export class FleetRig {
  readonly store = new MemoryStore();
  readonly asked: FleetQuestion[] = [];
  readonly events: string[] = [];
  readonly payloads: Record<string, unknown>[] = [];
  readonly drained: string[] = [];
  readonly paused: string[] = [];
  readonly workers = new Map<string, FleetWorker>();
  numbers = { pending: 0, executing: 0, submitted: 0, ended: 0, isIdle: false, isOver: false };
  nowMs = 1_000;
  #fleets: Fleets | undefined;
  #settings: readonly FleetSettings[];

  private constructor(settings: readonly FleetSettings[]) {
    this.#settings = settings;
  }

  static async open(...settings: readonly Partial<FleetSettings>[]): Promise<FleetRig> {
    const rig = new FleetRig(
      (settings.length === 0 ? [{}] : settings).map((one) => ({ ...SETTINGS, ...one })),
    );
    await rig.restart();
    return rig;
  }

  /** Another leader, of what is stored; with other settings, where some are given. */
  async restart(settings = this.#settings): Promise<void> {
    this.#settings = settings;
    this.asked.length = 0;
    const random = seededRandom(7);
    const newId = (wallMs: number): string => newUlid<WorkerId>({ wallMs: () => wallMs }, random);
    const parts = { epoch: 1, random, newId };
    this.#fleets = await replayFleets(this.store, settings, parts);
  }

  get fleets(): Fleets {
    if (this.#fleets === undefined) throw new Error("the room is not open");
    return this.#fleets;
  }

  get fleet(): Fleet {
    const [first] = this.fleets.all;
    if (first === undefined) throw new Error("there is no fleet");
    return first;
  }

  get state(): string {
    return fleetStateOf(this.fleet);
  }

  /** Ids of those that are not over, in the order in which they were asked for. */
  get live(): string[] {
    return liveOf(this.fleet).map(({ id }) => id);
  }

  stateOf(id: string): string {
    const found = this.fleets.allocation(id);
    return found === undefined ? "unknown" : allocationStateOf(found.allocation);
  }

  get run(): FleetRun {
    return {
      ...this.numbers,
      workers: this.workers,
      drain: (id) => void this.drained.push(id),
      pause: (reason) => {
        this.paused.push(reason);
        this.numbers.isIdle = true;
      },
    };
  }

  submit(items: number): void {
    this.numbers.pending += items;
    this.numbers.submitted += items;
  }

  /** Items come to wait, and fleets have a good list. */
  async haveItems(items: number): Promise<void> {
    this.submit(items);
    await this.pass(STEP_MS);
    await this.list([]);
  }

  /** Scans until so much time has passed. */
  async pass(ms: number): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += STEP_MS) {
      this.nowMs += STEP_MS;
      await this.turn((turn) => this.fleets.onScan(turn, this.run));
    }
  }

  /** Questions leave when the turn is committed. */
  async turn(act: (turn: Turn) => void): Promise<void> {
    const turn = new Turn(this.nowMs, BEGUN_MS + this.nowMs, BEGUN_MS + this.nowMs);
    act(turn);
    if (turn.hasWrites) await this.store.commit({ ...turn.writes, expect: [] });
    for (const effect of turn.effects)
      if (effect.kind === "askProvider") this.asked.push(effect.question);
      else if (effect.kind === "event") {
        this.events.push(effect.emit.topic);
        this.payloads.push({ ...effect.emit.payload });
      }
  }

  /** The questions of that kind that nobody has answered, which are taken. */
  take<Verb extends FleetQuestion["verb"]>(verb: Verb): Extract<FleetQuestion, { readonly verb: Verb }>[] {
    const taken = this.asked.filter(
      (one): one is Extract<FleetQuestion, { readonly verb: Verb }> => one.verb === verb,
    );
    this.asked.splice(0, this.asked.length, ...this.asked.filter((one) => one.verb !== verb));
    return taken;
  }

  async answer(heard: FleetAnswer): Promise<void> {
    await this.turn((turn) => this.fleets.onAnswer(turn, heard, this.run));
  }

  /** Answers every list that was asked for, each with those of its fleet. */
  async list(
    allocations: readonly (Partial<ListedAllocation> & { readonly allocation: string })[],
    silent: readonly SilentPlace[] = [],
  ): Promise<void> {
    for (const { fleet, number } of this.take("list"))
      await this.answer({
        ...{ verb: "list", fleet, number },
        answer: {
          ...{ kind: "listed", silent },
          allocations: allocations
            .filter(({ allocation: id }) => (this.fleets.allocation(id)?.fleet.name ?? fleet) === fleet)
            .map((one) => ({ ...{ ref: "7", state: "running", isPreempted: false }, ...one })),
        },
      });
  }

  async failList(): Promise<void> {
    for (const { fleet, number } of this.take("list"))
      await this.answer({ verb: "list", fleet, number, answer: { kind: "unknown", reason: "down" } });
  }

  /** Answers every launch that was asked for; returns their ids. */
  async launch(
    answer: Extract<FleetAnswer, { readonly verb: "launch" }>["answer"] = { kind: "launched", ref: "7" },
  ): Promise<string[]> {
    const launches = this.take("launch");
    for (const { fleet, allocation } of launches)
      await this.answer({ verb: "launch", fleet, allocation, answer });
    return launches.map(({ allocation }) => allocation);
  }

  /** The same of the one that the next scan asks for. */
  async launchOne(...answer: Parameters<FleetRig["launch"]>): Promise<string> {
    await this.pass(STEP_MS);
    const [id = ""] = await this.launch(...answer);
    return id;
  }

  async answerStops(): Promise<string[]> {
    const stops = this.take("stop");
    for (const { fleet, allocation } of stops)
      await this.answer({ verb: "stop", fleet, allocation, answer: { kind: "stopped" } });
    return stops.map(({ allocation, force }) => `${allocation}${force ? " by force" : ""}`);
  }

  /** The worker of an allocation, as the registry has it. */
  worker(id: string, said: Partial<FleetWorker> = {}): void {
    this.workers.set(id, {
      ...{ id, slots: 1, presence: "heard", silentMs: 0, isOfUse: true, isPoor: false },
      ...{ hasItems: true, hasWorked: false },
      ...this.workers.get(id),
      ...said,
    });
  }
}
