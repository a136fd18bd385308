// The room of fleets, as the rest of the coordinator has it: a look at each scan, answers of providers, questions and decisions of operators,
// and who may join by the bundle of an allocation. A run without fleets loads none of it.
//
// In the room: `fleet` and `allocation` are one of each in memory, moved by their charts in `books` and stored by `records`. `asking` asks
// providers, `heard` folds in what they and workers say. `demand`, `budget` and `plan` are the rule, pure, and `situation` is a fleet as the rule
// sees it. `operator` is what a person decides; `replay-fleets` reads all of it back, and `ports` is the coordinator as the room sees it.
//
// Keeps true: each look is this state against that demand, never a reaction to one event; nothing is launched before a good list.
import type { Random } from "../../base/random.ts";
import type { FleetSettings } from "../../config/fleet.ts";
import type { Checked } from "../../fleet/provider.ts";
import type { Exposition } from "../../observe/metrics/exposition.ts";
import type { Store } from "../../storage/store.ts";
import { allocationStateOf, isOver } from "./allocation.ts";
import type { Allocation } from "./allocation.ts";
import { poll, pursue } from "./asking.ts";
import { at, end, launch, moveFleet, writeAllocation, writeFleet } from "./books.ts";
import { allowanceOf, spentMsOf } from "./budget.ts";
import { itemMsOf, learnWork, slotsWanted } from "./demand.ts";
import type { Demand } from "./demand.ts";
import {
  accountOf,
  countsOf,
  fleetStateOf,
  isSpent,
  latestOf,
  liveOf,
  newBooks,
  openFleet,
} from "./fleet.ts";
import type { Fleet } from "./fleet.ts";
import { followWorkers, onLaunched, onListed, onLog } from "./heard.ts";
import { shownDetail, shownFleet, steerFleet } from "./operator.ts";
import type { FleetDecision, FleetsShown, FleetVerdict, ShownFleet } from "./operator.ts";
import { planOf } from "./plan.ts";
import type { FleetAnswer, FleetQuestion, FleetRun, FleetTurn } from "./ports.ts";
import { situationOf } from "./situation.ts";

/** Fleets and their providers, as the composition has them: nothing of them is loaded where there are none. */
export interface FleetPorts {
  /** Undefined where no fleet is configured, and none has anything left in the store. Throws store_corrupt or store_newer. */
  open(store: Store, epoch: number): Promise<Fleets | undefined>;
  /** Calls `tell` whenever the settings have changed since, with a room for them where there is none yet. */
  follow?(tell: (changed: ChangedFleets) => void): void;
  /** Never rejects. */
  ask(question: FleetQuestion): Promise<FleetAnswer>;
  /** Undefined for a fleet that is not configured. Never rejects. */
  check(fleet: string): Promise<Checked | undefined>;
}

export interface ChangedFleets {
  readonly settings: readonly FleetSettings[];
  /** Without fleets. */
  readonly empty: Fleets;
}

export interface FleetsOptions {
  readonly epoch: number;
  readonly random: Random;
  /** A ULID of that wall time. */
  readonly newId: (wallMs: number) => string;
}

/** With which a certificate is asked for: its id, and what tells one request from another. */
interface AskingBundle {
  readonly id: string;
  readonly request: string;
}

/** Experience is written so often. */
const WRITE_EVERY_MS = 10_000;

export class Fleets {
  /** In the order of the file, behind them those that it has no more. */
  #all: readonly Fleet[];
  readonly #options: FleetsOptions;
  #lookedAtMs: number | undefined;
  #endedBefore: number | undefined;
  /** Since when something executes while nothing has ended, monotonic. */
  #executingSinceMs: number | undefined;
  /** Slots for all of the work, as they were wanted last. */
  #slotsWanted = 0;

  constructor(all: readonly Fleet[], options: FleetsOptions) {
    this.#all = all;
    this.#options = options;
  }

  get all(): readonly Fleet[] {
    return this.#all;
  }

  /** The file has changed: these are its fleets now. One that it has no more is drained, by the provider that it had. */
  configure(settings: readonly FleetSettings[]): void {
    const configured = settings.map((each) => {
      const known = this.named(each.name);
      if (known === undefined) return openFleet(each, newBooks(), [], true);
      return Object.assign(known, { settings: each, isConfigured: true });
    });
    const removed = this.all.filter(({ name }) => !settings.some((each) => each.name === name));
    for (const fleet of removed) fleet.isConfigured = false;
    this.#all = [...configured, ...removed];
  }

  /** The latest moment in the rows: a clock that is behind it would meter nothing until it had caught up. */
  get latestMs(): number {
    return Math.max(0, ...this.all.map(latestOf));
  }

  named(name: string): Fleet | undefined {
    return this.all.find((fleet) => fleet.name === name);
  }

  allocation(id: string): { readonly fleet: Fleet; readonly allocation: Allocation } | undefined {
    for (const fleet of this.all) {
      const allocation = fleet.allocations.get(id);
      if (allocation !== undefined) return { fleet, allocation };
    }
    return undefined;
  }

  /** Why that worker may not join by that bundle; undefined: it may, or the bundle is none of an allocation. */
  refusalOf({ id, request }: AskingBundle, workerId: string): string | undefined {
    const { allocation } = this.allocation(id) ?? {};
    if (allocation === undefined) return undefined;
    if (workerId !== id) return `it is for the worker of allocation ${id} alone`;
    if (isOver(allocation) || allocationStateOf(allocation) === "Ending") return `allocation ${id} is over`;
    if (allocation.request === "" || allocation.request === request) return undefined;
    return `the worker of allocation ${id} has joined by another request`;
  }

  /** The bundle of an allocation was used: by this request, and by no other from now on. */
  noteRequest(turn: FleetTurn, { id, request }: AskingBundle): void {
    const { allocation } = this.allocation(id) ?? {};
    if (allocation === undefined || allocation.request === request) return;
    allocation.request = request;
    writeAllocation(turn, allocation);
    turn.requireSync();
  }

  shown(turn: FleetTurn): readonly ShownFleet[] {
    return this.#present.map((fleet) => shownFleet(turn, fleet));
  }

  /** The same with all that is remembered of each. */
  detailed(turn: FleetTurn): FleetsShown {
    return { fleets: this.#present.map((fleet) => shownDetail(turn, fleet)) };
  }

  /** Carries out a decision of a person, named by the certificate. */
  steer(
    turn: FleetTurn,
    decided: { readonly by: string; readonly decision: FleetDecision },
    run: FleetRun,
  ): FleetVerdict {
    return steerFleet(turn, this, decided, run);
  }

  addMetrics(exposition: Exposition, steadyMs: number): void {
    const counts = { requested: 0, queued: 0, booting: 0, joined: 0, ending: 0 };
    let spentMs = 0;
    for (const fleet of this.all) {
      const own = countsOf(fleet);
      for (const state of Object.keys(counts) as (keyof typeof counts)[]) counts[state] += own[state];
      spentMs += spentMsOf(accountOf(fleet, steadyMs));
    }
    exposition.add("rollout_slots_wanted", this.#slotsWanted);
    exposition.addEach("rollout_allocations", "state", counts);
    exposition.add("rollout_machine_seconds_total", spentMs / 1_000);
  }

  /** The provider of a fleet has answered. */
  onAnswer(turn: FleetTurn, heard: FleetAnswer, run: FleetRun): void {
    const fleet = this.named(heard.fleet);
    if (fleet === undefined) return;
    const hearing = { run, random: this.#options.random };
    switch (heard.verb) {
      case "launch":
        return onLaunched(turn, fleet, heard, hearing);
      case "list":
        return onListed(turn, fleet, heard, hearing);
      case "log":
        return onLog(turn, fleet, heard);
      case "stop": {
        const allocation = fleet.allocations.get(heard.allocation);
        if (allocation !== undefined) allocation.isStopping = false;
      }
    }
  }

  /** At each scan. */
  onScan(turn: FleetTurn, run: FleetRun): void {
    const sinceMs = this.#lookedAtMs === undefined ? 0 : turn.nowMs - this.#lookedAtMs;
    this.#lookedAtMs = turn.nowMs;
    for (const fleet of this.all) followWorkers(turn, fleet, { run, random: this.#options.random });
    this.#learn(turn, run, sinceMs);
    this.#sendAway(run);
    let slotsElsewhere = this.#slotsByHand(run);
    this.#slotsWanted = 0;
    for (const fleet of this.#inOrder()) {
      slotsElsewhere += this.#look(turn, fleet, run, slotsElsewhere) * fleet.settings.slots;
    }
    this.#pauseIfSpent(turn, run);
  }

  /** Fleets of the file, and others while something of them is there. */
  get #present(): Fleet[] {
    return this.all.filter((fleet) => fleet.isConfigured || liveOf(fleet).length > 0);
  }

  /** The cheapest first; then as in the file. */
  #inOrder(): Fleet[] {
    const priceOf = ({ settings }: Fleet): number => settings.pricePerHour ?? 0;
    return this.#present.toSorted((one, other) => priceOf(one) - priceOf(other));
  }

  /** A worker that is heard after its allocation was over delivers its results, and leaves. */
  #sendAway(run: FleetRun): void {
    for (const { id, presence, isOfUse } of run.workers.values()) {
      if (presence !== "heard" || !isOfUse) continue;
      const found = this.allocation(id);
      if (found !== undefined && isOver(found.allocation)) run.drain(id);
    }
  }

  #slotsByHand({ workers }: FleetRun): number {
    let slots = 0;
    for (const { id, isOfUse, slots: own } of workers.values())
      if (isOfUse && this.allocation(id) === undefined) slots += own;
    return slots;
  }

  /** Returns how many of its workers count for the others. */
  #look(turn: FleetTurn, fleet: Fleet, run: FleetRun, slotsElsewhere: number): number {
    moveFleet(turn, fleet, { type: "time.passed", atMs: at(turn) });
    const allowance = allowanceOf(fleet.settings, accountOf(fleet, at(turn)), turn.wallMs);
    const { spent, launches } = allowance;
    if (spent !== undefined) moveFleet(turn, fleet, { type: "budget.spent", reason: spent });
    // Room for the end of those that drain is none for others.
    else if (launches > 0) moveFleet(turn, fleet, { type: "budget.left" });
    if (turn.nowMs - fleet.grown.atMs >= fleet.settings.pollIntervalMs)
      fleet.grown = { launches: 0, from: liveOf(fleet).length, atMs: turn.nowMs };
    const demand = this.#work(turn, fleet, run, slotsElsewhere);
    const situation = situationOf(turn, fleet, { run, demand, allowance });
    const plan = planOf(situation);
    this.#slotsWanted = Math.max(this.#slotsWanted, run.isIdle ? 0 : slotsWanted(demand, situation.settings));
    for (const { id, cause } of plan.ends) {
      const allocation = fleet.allocations.get(id);
      if (allocation !== undefined) end(turn, fleet, allocation, { cause, run });
    }
    const before = fleet.allocations.size;
    for (let left = plan.launches; left > 0; left--) this.#launch(turn, fleet);
    fleet.grown = { ...fleet.grown, launches: fleet.grown.launches + plan.launches };
    fleet.surplusSinceMs = plan.hasSurplus ? (fleet.surplusSinceMs ?? turn.nowMs) : undefined;
    if (plan.want !== fleet.want && (plan.launches > 0 || plan.ends.length > 0 || before === 0))
      this.#announce(turn, fleet, plan.want);
    fleet.want = plan.want;
    fleet.why = plan.why;
    for (const allocation of liveOf(fleet))
      pursue(turn, fleet, allocation, { run, epoch: this.#options.epoch });
    poll(turn, fleet);
    // One that launches nothing passes its share on.
    return situation.obstacle === undefined ? plan.want : Math.min(plan.want, liveOf(fleet).length);
  }

  #launch(turn: FleetTurn, fleet: Fleet): void {
    const id = this.#options.newId(turn.wallMs);
    launch(turn, fleet, { id, epoch: this.#options.epoch });
  }

  #announce(turn: FleetTurn, fleet: Fleet, want: number): void {
    turn.emit("fleet_scaled", {
      fleet: fleet.name,
      want,
      wanted_before: fleet.want,
      there: liveOf(fleet).length,
    });
  }

  #work(turn: FleetTurn, fleet: Fleet, run: FleetRun, slotsElsewhere: number): Demand {
    const executingForMs = this.#executingSinceMs === undefined ? 0 : turn.nowMs - this.#executingSinceMs;
    return {
      ...(run.isIdle ? { pending: 0, executing: 0 } : { pending: run.pending, executing: run.executing }),
      slotsElsewhere,
      grownForMs: at(turn) - fleet.backlog.sinceMs,
      itemMs: itemMsOf(fleet.learned, executingForMs),
    };
  }

  #learn(turn: FleetTurn, { executing, ended, submitted }: FleetRun, sinceMs: number): void {
    const endedNow = ended - (this.#endedBefore ?? ended);
    this.#endedBefore = ended;
    if (executing === 0 || endedNow > 0) this.#executingSinceMs = undefined;
    if (executing > 0) this.#executingSinceMs ??= turn.nowMs;
    for (const fleet of this.all) {
      if (submitted > fleet.backlog.submitted) {
        fleet.backlog = { submitted, sinceMs: at(turn) };
        fleet.isLearning = true;
      }
      if (executing > 0 || endedNow > 0) {
        fleet.learned = learnWork(fleet.learned, executing * sinceMs, Math.max(0, endedNow));
        fleet.isLearning = true;
      }
      if (fleet.isLearning && turn.nowMs - fleet.writtenAtMs >= WRITE_EVERY_MS) writeFleet(turn, fleet);
    }
  }

  /** Nobody is left who could work, and no fleet may start anybody: a person decides. Asked once, whichever leader asks. */
  #pauseIfSpent(turn: FleetTurn, run: FleetRun): void {
    const configured = this.all.filter(({ isConfigured }) => isConfigured);
    const isOut =
      configured.every(isSpent) &&
      this.all.every((fleet) => liveOf(fleet).length === 0) &&
      ![...run.workers.values()].some(({ isOfUse }) => isOfUse);
    if (!isOut) for (const fleet of configured) moveFleet(turn, fleet, { type: "help.came" });
    const asking = configured.filter((fleet) => fleetStateOf(fleet) === "Spent");
    if (!isOut || asking.length === 0 || run.isIdle || run.pending + run.executing === 0) return;
    for (const fleet of asking) moveFleet(turn, fleet, { type: "run.paused" });
    run.pause(configured.map(({ name, row }) => `fleet ${name}: ${row.context.reason}`).join("; "));
  }
}
