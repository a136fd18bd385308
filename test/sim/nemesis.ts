// Trouble, by chance: of the kinds that the settings allow, at moments that the seed decides, until the storm is over. Then all
// that it did is undone, and the cluster has to come to its end.
import type { Random } from "../../src/base/random.ts";
import type { Coordinators } from "./coordinators.ts";
import { DatabaseNemesis } from "./database-nemesis.ts";
import type { SharedDatabase } from "./ledger-home.ts";
import type { Network } from "./network.ts";
import { CALM_DISK, CALM_NETWORK } from "./settings.ts";
import type { Fault, Settings } from "./settings.ts";
import type { DiskWeather } from "./process-store.ts";
import type { Machine } from "./process.ts";
import type { SimWorld } from "./world.ts";
import { between, happens } from "./world.ts";

/** A machine with a worker, as trouble sees it. */
export interface Victim {
  readonly machine: Machine;
  kill(): void;
  losePower(): void;
  stopFor(durationMs: number): void;
  /** A notice that the machine goes away. */
  preempt(leadMs: number): void;
  putAtRisk(): void;
  heal(): void;
}

export interface Cluster {
  readonly world: SimWorld;
  readonly network: Network;
  readonly settings: Settings;
  readonly disk: DiskWeather;
  readonly coordinators: Coordinators;
  /** Undefined: the ledger is on the coordinator's own disk. */
  readonly shared: SharedDatabase | undefined;
  /** More may come. */
  readonly workers: readonly [Victim, ...Victim[]];
  readonly onHealed?: () => void;
}

const STOP_MIN_MS = 50;
const STOP_MAX_MS = 9_000;
const PARTITION_MAX_MS = 9_000;
const LEAD_MAX_MS = 6_000;
const WALL_JUMP_MS = 3_600_000;
/** Timers of the next leader move by so much, and the run waits for them. */
const TIMERS_JUMP_MS = 20_000;

export class Nemesis {
  readonly #cluster: Cluster;
  readonly #random: Random;
  readonly #database: DatabaseNemesis | undefined;
  #isOver = false;

  constructor(cluster: Cluster) {
    const { world, coordinators, shared } = cluster;
    this.#cluster = cluster;
    this.#random = world.newRandom();
    this.#database = shared && new DatabaseNemesis({ world, coordinators, shared, random: this.#random });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  start(): void {
    const { world, settings } = this.#cluster;
    world.after(settings.stormMs, () => this.#heal());
    if (settings.faults.length > 0) this.#next();
  }

  #next(): void {
    const { world, settings } = this.#cluster;
    world.after(between(this.#random, 0, 2 * settings.faultEveryMs), () => {
      if (this.#isOver) return;
      const fault = settings.faults[Math.floor(this.#random.unit() * settings.faults.length)];
      if (fault !== undefined) this.#strike(fault);
      this.#next();
    });
  }

  #strike(fault: Fault): void {
    const { coordinators } = this.#cluster;
    switch (fault) {
      case "coordinator-kill":
        return coordinators.victim().kill();
      case "coordinator-power":
        return coordinators.victim().losePower();
      case "coordinator-stop":
        return coordinators.victim().stopFor(this.#stopMs());
      case "coordinator-restart":
        return coordinators.victim().restart();
      case "coordinator-partition":
        return this.#cutOff([coordinators.victim().machine]);
      case "step-down":
        return coordinators.leader.stepDown();
      case "successor":
        return coordinators.leader.succeed(this.#stopMs());
      case "worker-kill":
        return this.#victim().kill();
      case "worker-power":
        return this.#victim().losePower();
      case "worker-stop":
        return this.#victim().stopFor(this.#stopMs());
      case "preemption":
        return this.#victim().preempt(between(this.#random, 0, LEAD_MAX_MS));
      case "rebalance":
        return this.#victim().putAtRisk();
      case "partition":
        return this.#partition();
      case "wall-clock": {
        const machine = happens(this.#random, 0.5) ? coordinators.victim().machine : this.#victim().machine;
        const jumpMs = this.#cluster.settings.hasActors ? TIMERS_JUMP_MS : WALL_JUMP_MS;
        machine.wallOffsetMs += between(this.#random, -jumpMs, jumpMs);
        return;
      }
      default:
        return this.#database?.strike(fault);
    }
  }

  #victim(): Victim {
    const { workers } = this.#cluster;
    return workers[Math.floor(this.#random.unit() * workers.length)] ?? workers[0];
  }

  /** More often short than long. */
  #stopMs(): number {
    return between(this.#random, STOP_MIN_MS, happens(this.#random, 0.6) ? 1_500 : STOP_MAX_MS);
  }

  #partition(): void {
    const { workers } = this.#cluster;
    const cut = happens(this.#random, 0.2) ? workers : [this.#victim()];
    this.#cutOff(cut.map(({ machine }) => machine));
  }

  #cutOff(machines: readonly Machine[]): void {
    const { network, world } = this.#cluster;
    const directions = (["up", "down"] as const).filter(() => happens(this.#random, 0.7));
    for (const { name } of machines) {
      world.say("net", `${name} is cut off: ${directions.join(" and ")}`);
      for (const direction of directions) network.block(name, direction);
      world.after(between(this.#random, 100, PARTITION_MAX_MS), () => network.unblock(name));
    }
  }

  #heal(): void {
    const { network, disk, coordinators, workers, world } = this.#cluster;
    this.#isOver = true;
    world.say("net", "the storm is over");
    Object.assign(network.weather, CALM_NETWORK);
    Object.assign(disk, CALM_DISK);
    this.#database?.heal();
    coordinators.heal();
    for (const { machine } of coordinators.all) network.unblock(machine.name);
    for (const worker of workers) {
      worker.heal();
      network.unblock(worker.machine.name);
    }
    this.#cluster.onHealed?.();
  }
}
