// The fleet of a simulated run: its provider, its witness, and the way to both that a coordinator has.
import { newUlid } from "../../src/base/ids.ts";
import type { WorkerId } from "../../src/base/ids.ts";
import type { FleetSettings } from "../../src/config/fleet.ts";
import type { FleetPorts } from "../../src/coordinator/fleet/fleets.ts";
import { replayFleets } from "../../src/coordinator/fleet/replay-fleets.ts";
import type { Store } from "../../src/storage/store.ts";
import type { FleetMix } from "./fleet-settings.ts";
import { FleetWitness } from "./fleet-witness.ts";
import type { SimProcess } from "./process.ts";
import type { MachineNode } from "./sim-machine.ts";
import { SimProvider } from "./sim-provider.ts";
import type { SimWorld } from "./world.ts";

/** Seams for clusters that are broken on purpose. */
interface FleetSeams {
  readonly fleets?: (ports: FleetPorts, fleet: SimFleet) => FleetPorts;
  readonly fleetSettings?: (settings: FleetSettings, fleet: SimFleet) => FleetSettings;
}

export interface SimFleetOptions {
  readonly world: SimWorld;
  readonly mix: FleetMix;
  readonly rows: () => Store;
  readonly hasGoneBack: () => boolean;
  readonly newMachine: (allocation: string, onEnded: () => void) => MachineNode;
  readonly seams: FleetSeams;
}

const FOREIGN = 2;

export class SimFleet {
  readonly provider: SimProvider;
  readonly witness: FleetWitness;
  readonly #seams: FleetSeams;
  readonly #settings: FleetSettings;

  constructor({ seams, ...options }: SimFleetOptions) {
    const { world, mix } = options;
    const random = world.newRandom();
    const newId = (): string => newUlid<WorkerId>({ wallMs: () => 0 }, random);
    const machine = (id: string) => this.provider.machines.get(id);
    this.witness = new FleetWitness({ ...options, machine });
    const foreign = Array.from({ length: FOREIGN }, newId);
    this.provider = new SimProvider({ ...options, witness: this.witness, foreign });
    this.#seams = seams;
    this.#settings = seams.fleetSettings?.(mix.settings, this) ?? mix.settings;
  }

  /** As a process has it. */
  ports(process: SimProcess): FleetPorts {
    const { random } = process;
    const newId = (wallMs: number): string => newUlid<WorkerId>({ wallMs: () => wallMs }, random);
    const ports: FleetPorts = {
      open: async (store, epoch) => {
        await this.witness.readAgain();
        return replayFleets(store, [this.#settings], { epoch, random, newId });
      },
      ask: (question) => this.provider.ask(process, question),
      check: () => Promise.resolve(undefined),
    };
    return this.#seams.fleets?.(ports, this) ?? ports;
  }

  /** No machine is there, or comes. */
  get isOver(): boolean {
    return this.provider.alive.length === 0 && this.provider.landings === 0;
  }
}
