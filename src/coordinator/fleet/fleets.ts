// The room of fleets, as the rest of the coordinator has it: a look at each scan, answers of providers, questions and decisions of operators,
// and who may join by the bundle of an allocation. A run without fleets loads none of it.
//
// In the room: `fleet` and `allocation` are one of each in memory, moved by their charts in `books` and stored by `records`; `standing` says where
// their charts stand. `heard` folds in what providers and workers say. `demand`, `budget` and `plan` are the rule, pure. `operator` is what a person
// decides; `replay-fleets` reads all of it back, and `ports` is the coordinator as the room sees it.
//
// Keeps true: each look is this state against that demand, never a reaction to one event; nothing is launched before a good list.
import type { EndCause } from "../../../machines/allocation.ts";
import type { Random } from "../../base/random.ts";
import type { Checked } from "../../fleet/provider.ts";
import type { Exposition } from "../../observe/metrics/exposition.ts";
import type { Store } from "../../storage/store.ts";
import { allocationStateOf, isOver, ranMs } from "./allocation.ts";
import type { Allocation } from "./allocation.ts";
import { at, end, launch, moveFleet, sendLaunch, step, writeFleet } from "./books.ts";
import { allowanceOf, DRAIN_MS, spentMsOf } from "./budget.ts";
import type { Allowance } from "./budget.ts";
import { itemMsOf, learnWork, slotsWanted } from "./demand.ts";
import type { Demand } from "./demand.ts";
import { accountOf, countsOf, fleetStateOf, liveOf, settingsOf } from "./fleet.ts";
import type { Fleet } from "./fleet.ts";
import { askStop, followWorkers, onLaunched, onListed, onLog } from "./heard.ts";
import { showFleets, steerFleet } from "./operator.ts";
import type { FleetDecision, FleetsShown, FleetVerdict } from "./operator.ts";
import { planOf } from "./plan.ts";
import type { Situation, Unit } from "./plan.ts";
import type { FleetAnswer, FleetQuestion, FleetRun, FleetTurn } from "./ports.ts";

/** Fleets and their providers, as the composition has them: nothing of them is loaded where there are none. */
export interface FleetPorts {
  /** Undefined where no fleet is configured, and none has anything left in the store. Throws store_corrupt or store_newer. */
  open(store: Store, epoch: number): Promise<Fleets | undefined>;
  /** Never rejects. */
  ask(question: FleetQuestion): Promise<FleetAnswer>;
  /** Undefined for a fleet that is not configured. Never rejects. */
  check(fleet: string): Promise<Checked | undefined>;
}

export interface FleetsOptions {
  readonly epoch: number;
  readonly random: Random;
  /** A ULID of that wall time. */
  readonly newId: (wallMs: number) => string;
}

const HOUR_MS = 3_600_000;
/** Launches in an hour without a join. */
const LAUNCHES_MAX = 60;
const RELAUNCH_AFTER_MS = 30_000;
const MISSES = 2;
const STOP_AGAIN = { baseMs: 5_000, ceilingMs: 300_000 };
const STUCK_STOPS = 5;
/** Beside what a drain may take. */
const STOP_GRACE_MS = 5_000;
/** Experience is written so often. */
const WRITE_EVERY_MS = 10_000;
/** Where all allocations are heard, lists look for orphans alone. */
const QUIET_POLLS = 10;
const JOIN_EXPECTED_MS = 30_000;

export class Fleets {
  /** In the order of the file. */
  readonly all: readonly Fleet[];
  readonly #options: FleetsOptions;
  #lookedAtMs: number | undefined;
  #endedBefore: number | undefined;
  /** Since when something executes while nothing has ended, monotonic. */
  #executingSinceMs: number | undefined;
  #hasPausedRun = false;
  /** Slots for all of the work, as they were wanted last. */
  #slotsWanted = 0;

  constructor(all: readonly Fleet[], options: FleetsOptions) {
    this.all = all;
    this.#options = options;
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
  refusalOf(bundleId: string, workerId: string): string | undefined {
    const found = this.allocation(bundleId);
    if (found === undefined) return undefined;
    if (workerId !== bundleId) return `it is for the worker of allocation ${bundleId} alone`;
    const state = allocationStateOf(found.allocation);
    if (isOver(found.allocation) || state === "Ending") return `allocation ${bundleId} is over`;
    return undefined;
  }

  shown(turn: FleetTurn): FleetsShown {
    return showFleets(turn, this);
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
    this.#pauseIfSpent(run);
  }

  /** The cheapest first; then as in the file. */
  #inOrder(): Fleet[] {
    const priceOf = ({ settings }: Fleet): number => settings.pricePerHour ?? 0;
    return this.all.toSorted((one, other) => priceOf(one) - priceOf(other));
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
    const situation = this.#situation(turn, fleet, { run, slotsElsewhere, allowance });
    const plan = planOf(situation);
    this.#slotsWanted = Math.max(
      this.#slotsWanted,
      run.isIdle ? 0 : slotsWanted(situation.demand, situation.settings),
    );
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
    for (const allocation of liveOf(fleet)) this.#pursue(turn, fleet, allocation, run);
    this.#poll(turn, fleet);
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

  #situation(
    turn: FleetTurn,
    fleet: Fleet,
    {
      run,
      slotsElsewhere,
      allowance,
    }: { readonly run: FleetRun; readonly slotsElsewhere: number; readonly allowance: Allowance },
  ): Situation {
    const settings = settingsOf(fleet);
    const { learned } = fleet;
    if (turn.nowMs - fleet.grown.atMs >= settings.pollIntervalMs)
      fleet.grown = { launches: 0, from: liveOf(fleet).length, atMs: turn.nowMs };
    return {
      settings,
      units: liveOf(fleet).map((allocation) => unitOf(turn, allocation, run)),
      demand: this.#demand(turn, fleet, run, slotsElsewhere),
      joinMs: learned.joinMs === 0 ? Math.min(JOIN_EXPECTED_MS, settings.startTimeoutMs) : learned.joinMs,
      surplusMs: fleet.surplusSinceMs === undefined ? undefined : turn.nowMs - fleet.surplusSinceMs,
      obstacle: obstacleOf(fleet),
      launchesMax: launchesMaxOf(turn, fleet, allowance),
      grown: fleet.grown,
      over: overOf(fleet, run, { allowance, wallMs: turn.wallMs }),
    };
  }

  #demand(turn: FleetTurn, fleet: Fleet, run: FleetRun, slotsElsewhere: number): Demand {
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

  /** Launches that have not come are repeated; allocations that are to end are told so until they have. */
  #pursue(turn: FleetTurn, fleet: Fleet, allocation: Allocation, run: FleetRun): void {
    const state = allocationStateOf(allocation);
    const { missed, launchedAtMs } = allocation.row.context;
    if (state === "Requested" && missed >= MISSES && at(turn) - launchedAtMs >= RELAUNCH_AFTER_MS) {
      step(turn, fleet, allocation, { type: "launch.repeated", atMs: at(turn) });
      return sendLaunch(turn, fleet, allocation, this.#options.epoch);
    }
    if (state === "Ending") this.#stop(turn, fleet, allocation, run);
  }

  #stop(turn: FleetTurn, fleet: Fleet, allocation: Allocation, { workers }: FleetRun): void {
    const { endingAtMs, stops, stopAtMs, ref } = allocation.row.context;
    if (allocation.isLaunching || allocation.isStopping) return;
    const presence = workers.get(allocation.id)?.presence;
    // One that leaves in good order needs no stop, unless it is listed all the same.
    const patienceMs = presence === undefined || presence === "silent" ? 0 : DRAIN_MS + STOP_GRACE_MS;
    if (at(turn) < Math.max(stopAtMs, (endingAtMs ?? 0) + patienceMs)) return;
    const againAtMs = at(turn) + Math.min(STOP_AGAIN.ceilingMs, STOP_AGAIN.baseMs * 2 ** Math.min(stops, 30));
    step(turn, fleet, allocation, { type: "stop.sent", atMs: at(turn), againAtMs });
    askStop(turn, fleet, allocation, { ref, force: stops > 0 });
    if (stops + 1 === STUCK_STOPS)
      turn.emit("allocation_stuck", { fleet: fleet.name, allocation: allocation.id, stops: stops + 1 });
  }

  /** Heartbeats say who lives: the provider is asked about the others. */
  #poll(turn: FleetTurn, fleet: Fleet): void {
    const { lists, settings } = fleet;
    if (lists.isAsking) return;
    const hasOthers = liveOf(fleet).some(
      (allocation) => allocationStateOf(allocation) !== "Joined" || allocation.isSilent,
    );
    const everyMs = settings.pollIntervalMs * (hasOthers || lists.good === 0 ? 1 : QUIET_POLLS);
    if (!lists.isUrgent && turn.nowMs - lists.askedAtMs < everyMs) return;
    lists.asked++;
    lists.isAsking = true;
    lists.isUrgent = false;
    lists.askedAtMs = turn.nowMs;
    turn.askProvider({ verb: "list", fleet: fleet.name, number: lists.asked });
  }

  /** Nobody is left who could work, and no fleet may start anybody: a person decides. Asked once. */
  #pauseIfSpent(run: FleetRun): void {
    const spent = this.all.filter((fleet) => fleetStateOf(fleet) === "Spent");
    const isOut =
      spent.length > 0 &&
      spent.length === this.all.length &&
      this.all.every((fleet) => liveOf(fleet).length === 0) &&
      ![...run.workers.values()].some(({ isOfUse }) => isOfUse);
    if (!isOut) this.#hasPausedRun = false;
    if (!isOut || this.#hasPausedRun || run.isIdle || run.pending + run.executing === 0) return;
    this.#hasPausedRun = true;
    run.pause(spent.map(({ name, row }) => `fleet ${name}: ${row.context.reason}`).join("; "));
  }
}

function unitOf(turn: FleetTurn, allocation: Allocation, { workers }: FleetRun): Unit {
  const { askedAtMs, queuedAtMs, bootedAtMs } = allocation.row.context;
  const worker = workers.get(allocation.id);
  const state = allocationStateOf(allocation) as Unit["state"];
  const sinceMs =
    (state === "Queued" ? queuedAtMs : state === "Booting" ? bootedAtMs : undefined) ?? askedAtMs;
  return {
    ...{ id: allocation.id, state, slots: worker?.slots ?? allocation.slots },
    ...{ forMs: at(turn) - sinceMs, ranMs: ranMs(allocation, at(turn)) },
    idleMs: allocation.idleSinceMs === undefined ? undefined : turn.nowMs - allocation.idleSinceMs,
    isPoor: worker?.isPoor === true,
  };
}

/** Why a fleet launches nothing, in words; undefined where nothing is in the way. */
function obstacleOf(fleet: Fleet): string | undefined {
  const { lists, row } = fleet;
  if (!fleet.isConfigured) return "it is not in the configuration any more";
  const { reason } = row.context;
  switch (fleetStateOf(fleet)) {
    case "Halted":
      return `halted: ${reason}`;
    case "Paused":
      return reason === "" ? "paused" : `paused: ${reason}`;
    case "Spent":
      return reason;
    case "Cooling":
      return `it waits: ${reason}`;
    case "Active":
      if (lists.trouble !== "") return `it cannot be listed: ${lists.trouble}`;
      return lists.good === 0 ? "its first list is waited for" : undefined;
  }
}

function launchesMaxOf(turn: FleetTurn, fleet: Fleet, { launches }: Allowance): number {
  const { count, sinceMs } = fleet.launches;
  if (count > 0 && at(turn) - sinceMs >= HOUR_MS) fleet.launches = { count: 0, sinceMs: 0 };
  const byHour = Math.max(0, LAUNCHES_MAX - fleet.launches.count);
  const coming = liveOf(fleet).filter(
    (allocation) => !["Joined", "Ending"].includes(allocationStateOf(allocation)),
  ).length;
  // After a failure one is tried at a time.
  const byFailures = fleet.row.context.failuresInRow > 0 ? Math.max(0, 1 - coming) : Infinity;
  return Math.min(launches, byHour, byFailures);
}

/** A budget ends also the workers of a fleet that is paused or halted. */
function overOf(
  fleet: Fleet,
  run: FleetRun,
  { allowance: { spent }, wallMs }: { readonly allowance: Allowance; readonly wallMs: number },
): EndCause | undefined {
  if (!fleet.isConfigured) return "removed";
  if (run.isOver) return "run_over";
  if (spent === undefined && fleetStateOf(fleet) !== "Spent") return undefined;
  const { stopAtMs } = fleet.settings;
  return stopAtMs !== undefined && wallMs >= stopAtMs ? "deadline" : "budget";
}
