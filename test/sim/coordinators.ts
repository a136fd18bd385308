// The coordinators of a simulated run: one with a ledger on its own disk, or several over one database. Trouble meets the one that
// leads more often than the others.
import type { Random } from "../../src/base/random.ts";
import type { CoordinatorNode } from "./coordinator-node.ts";
import type { Services } from "./sim-transport.ts";
import type { SimProcess } from "./process.ts";
import { happens } from "./world.ts";

const LEADER_CHANCE = 0.6;

export class Coordinators {
  readonly all: readonly [CoordinatorNode, ...CoordinatorNode[]];
  readonly #random: Random;

  constructor(all: readonly [CoordinatorNode, ...CoordinatorNode[]], random: Random) {
    this.all = all;
    this.#random = random;
  }

  /** Names of their machines. */
  get addresses(): string[] {
    return this.all.map(({ machine }) => machine.name);
  }

  servicesOf(process: SimProcess): Services | undefined {
    return this.all.find(({ machine }) => machine === process.machine)?.servicesOf(process);
  }

  /** The first one starts at once, the others when they like. */
  start(): void {
    const [first, ...others] = this.all;
    first.start();
    for (const node of others) node.startSoon();
  }

  /** The one with the highest epoch. */
  get leader(): CoordinatorNode {
    const [first, ...others] = this.all;
    const epochOf = ({ epoch = -1 }: CoordinatorNode): number => epoch;
    return others.reduce((best, node) => (epochOf(node) > epochOf(best) ? node : best), first);
  }

  /** One that meets trouble. */
  victim(): CoordinatorNode {
    const [only, ...others] = this.all;
    if (others.length === 0) return only;
    if (happens(this.#random, LEADER_CHANCE)) return this.leader;
    return this.all[Math.floor(this.#random.unit() * this.all.length)] ?? only;
  }

  heal(): void {
    for (const node of this.all) node.heal();
  }

  async checkReplay(): Promise<void> {
    for (const node of this.all) await node.checkReplay();
  }
}
