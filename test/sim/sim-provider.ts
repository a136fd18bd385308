// The system that has the machines of a simulated fleet. It outlives all coordinators, answers late, twice, wrongly or not at all, and has
// machines of another run too, which nobody of this one may touch.
import type { FleetAnswer, FleetQuestion } from "../../src/coordinator/fleet/ports.ts";
import type { Launched, ListedAllocation, Listing, Stopped } from "../../src/fleet/provider.ts";
import type { Random } from "../../src/base/random.ts";
import { CALM_PROVIDER } from "./fleet-settings.ts";
import type { FleetMix, ProviderWeather } from "./fleet-settings.ts";
import type { FleetWitness } from "./fleet-witness.ts";
import type { SimProcess } from "./process.ts";
import type { MachineNode, SimMachine } from "./sim-machine.ts";
import type { SimWorld } from "./world.ts";
import { between, happens } from "./world.ts";

export interface SimProviderOptions {
  readonly world: SimWorld;
  readonly mix: FleetMix;
  readonly witness: FleetWitness;
  readonly newMachine: (allocation: string, onEnded: () => void) => MachineNode;
  readonly foreign: readonly string[];
}

const LATE_MAX_MS = 4_000;
/** A launch of which nobody knows lands so late at most. */
const LANDS_LATE_MAX_MS = 45_000;
/** A program that does not answer is killed then. */
const TIMEOUT_MS = 5_000;
const DRAIN_MS = 10_000;
const LOOK_EVERY_MS = 1_000;
const UNKNOWN = { kind: "unknown", reason: "nobody has answered" } as const;

export class SimProvider {
  readonly machines = new Map<string, SimMachine>();
  /** Questions that are still to arrive. */
  landings = 0;
  readonly #options: SimProviderOptions;
  readonly #random: Random;
  #weather: ProviderWeather;

  constructor(options: SimProviderOptions) {
    this.#options = options;
    this.#random = options.world.newRandom();
    this.#weather = options.mix.weather;
    for (const id of options.foreign)
      this.machines.set(id, {
        ...{ id, isForeign: true, state: "running", sinceMs: 0, isStopped: false, isTaken: false },
        node: undefined,
      });
    this.#take();
  }

  calm(): void {
    this.#weather = { ...this.#weather, ...CALM_PROVIDER };
  }

  /** Machines of this run that are there or will be. */
  get alive(): SimMachine[] {
    return [...this.machines.values()].filter(({ isForeign, state }) => !isForeign && state !== "ended");
  }

  /** Resolves in a moment of the process, and never when it has died. */
  ask(process: SimProcess, question: FleetQuestion): Promise<FleetAnswer> {
    const { world } = this.#options;
    const { silentChance, delayMaxMs, lateChance, repeatChance } = this.#weather;
    return new Promise((resolve) => {
      const reply = (answer: FleetAnswer, delayMs: number): void =>
        void process.after(delayMs, () => resolve(answer));
      const isSilent = happens(this.#random, silentChance);
      const thereMs = between(this.#random, 0, delayMaxMs);
      if (isSilent) {
        reply(unknownOf(question), TIMEOUT_MS);
        if (happens(this.#random, 0.5)) return;
        const landsMs = happens(this.#random, 0.5) ? between(this.#random, 0, LANDS_LATE_MAX_MS) : thereMs;
        return this.#land(question, landsMs);
      }
      const backMs = between(this.#random, 0, happens(this.#random, lateChance) ? LATE_MAX_MS : delayMaxMs);
      world.after(thereMs, () => reply(this.#carryOut(question), backMs));
      if (happens(this.#random, repeatChance)) this.#land(question, between(this.#random, 0, LATE_MAX_MS));
    });
  }

  /** Nobody waits for its answer. */
  #land(question: FleetQuestion, delayMs: number): void {
    this.landings++;
    this.#options.world.after(delayMs, () => {
      this.landings--;
      this.#carryOut(question);
    });
  }

  #carryOut(question: FleetQuestion): FleetAnswer {
    const { fleet } = question;
    switch (question.verb) {
      case "launch":
        return {
          verb: "launch",
          fleet,
          allocation: question.allocation,
          answer: this.#launch(question.allocation),
        };
      case "list":
        return { verb: "list", fleet, number: question.number, answer: this.#list() };
      case "stop":
        return { verb: "stop", fleet, allocation: question.allocation, answer: this.#stop(question) };
      case "log":
        return { verb: "log", fleet, allocation: question.allocation, answer: { kind: "log", text: "" } };
    }
  }

  #launch(id: string): Launched {
    const { witness } = this.#options;
    witness.launchArrived(id);
    const { failChance, fullChance, refuseChance } = this.#weather;
    if (this.machines.has(id)) return { kind: "launched", ref: id };
    if (happens(this.#random, failChance)) return UNKNOWN;
    if (happens(this.#random, fullChance)) return { kind: "full", reason: "quota" };
    if (happens(this.#random, refuseChance)) return { kind: "refused", reason: "no such image" };
    this.#begin(id);
    return { kind: "launched", ref: id };
  }

  #begin(id: string): void {
    const { world, newMachine, witness } = this.#options;
    const machine: SimMachine = {
      ...{ id, isForeign: false, state: "queued", sinceMs: world.nowMs, isStopped: false, isTaken: false },
      node: undefined,
    };
    this.machines.set(id, machine);
    world.say("provider", `has ${id}`);
    witness.began(this.alive);
    const { queueMaxMs, bootMaxMs, mutedChance } = this.#weather;
    const isMute = happens(this.#random, mutedChance);
    const [queuedMs, bootMs] = [between(this.#random, 0, queueMaxMs), between(this.#random, 0, bootMaxMs)];
    world.after(queuedMs, () => {
      if (machine.state === "ended") return;
      machine.state = "running";
      world.after(bootMs, () => {
        if (machine.state === "ended") return;
        // Half of these end, and the others are there for nothing.
        if (isMute) return happens(this.#random, 0.5) ? this.#end(machine) : undefined;
        machine.node = newMachine(id, () => this.#end(machine));
        machine.node.start();
      });
    });
  }

  #end(machine: SimMachine): void {
    if (machine.state === "ended") return;
    machine.state = "ended";
    this.#options.world.say("provider", `has ${machine.id} no more`);
    machine.node?.kill();
  }

  #list(): Listing {
    if (happens(this.#random, this.#weather.failChance)) return UNKNOWN;
    const ours = [...this.machines.values()].filter(({ isForeign }) => !isForeign);
    // Machines that have ended are listed or not.
    const listed = ours.filter(({ state }) => state !== "ended" || happens(this.#random, 0.5));
    return { kind: "listed", allocations: listed.map((machine) => this.#shown(machine)) };
  }

  /** Its own list, with all that is another run's. */
  get everybodys(): ListedAllocation[] {
    return [...this.machines.values()].map((machine) => this.#shown(machine));
  }

  #shown({ id, state, isTaken }: SimMachine): ListedAllocation {
    const isOdd = state === "queued" && happens(this.#random, this.#weather.oddChance);
    return { allocation: id, ref: id, state: isOdd ? "running" : state, isPreempted: isTaken };
  }

  #stop({ allocation, force }: Extract<FleetQuestion, { readonly verb: "stop" }>): Stopped {
    if (happens(this.#random, this.#weather.failChance)) return UNKNOWN;
    const machine = this.machines.get(allocation);
    if (machine === undefined || machine.state === "ended") return { kind: "stopped" };
    this.#options.witness.stopped(machine);
    machine.isStopped = true;
    if (!force && machine.node?.process !== undefined) machine.node.preempt(DRAIN_MS);
    else this.#end(machine);
    return { kind: "stopped" };
  }

  /** Machines are taken away, by chance. */
  #take(): void {
    const { world } = this.#options;
    world.after(LOOK_EVERY_MS, () => {
      this.#take();
      for (const machine of this.alive)
        if (machine.state === "running" && happens(this.#random, this.#weather.takenChance)) {
          machine.isTaken = true;
          this.#end(machine);
        }
    });
  }
}

function unknownOf(question: FleetQuestion): FleetAnswer {
  const { fleet } = question;
  if (question.verb === "list") return { verb: "list", fleet, number: question.number, answer: UNKNOWN };
  const { verb, allocation } = question;
  return { verb, fleet, allocation, answer: UNKNOWN };
}
