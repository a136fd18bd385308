// Invariants of a cluster, whatever happens to it, seen from outside: of every batch on the disk, every message that leaves
// and every execution that starts. Each rule is one method; a broken one ends the run.
import type { IncarnationId, WorkerId } from "../../src/base/ids.ts";
import { parseUlidBytes } from "../../src/base/ids.ts";
import { itemIdText } from "../../src/coordinator/ledger/place.ts";
import type { RunningRecord } from "../../src/coordinator/ledger/records.ts";
import { OutcomeClass } from "../../src/gen/rollout/v1/work_pb.ts";
import type { Assignment, Result } from "../../src/gen/rollout/v1/work_pb.ts";
import { workerRecord } from "../../src/coordinator/workers/worker-record.ts";
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import { WORKERS_PREFIX } from "../../src/storage/keys.ts";
import type { Batch, CommitOutcome, Entry } from "../../src/storage/store.ts";
import type { Left, Return } from "./database.ts";
import { attemptName, describe, nameOf, resultName } from "./attempt-names.ts";
import type { Execution, Journal } from "./journal.ts";
import { LeadWitness } from "./lead-witness.ts";
import type { Sharing } from "./lead-witness.ts";
import type { SimProcess } from "./process.ts";
import { ReleaseWitness } from "./release-witness.ts";
import { RunWitness } from "./run-witness.ts";
import type { Decision } from "./run-witness.ts";
import type { Settings } from "./settings.ts";
import { KeyShadows } from "./key-shadows.ts";
import { SteadyClocks } from "./steady-clocks.ts";
import { isFinal, isReady, ShadowLedger } from "./shadow-ledger.ts";
import type { Change, ShadowItem } from "./shadow-ledger.ts";
import { short } from "./sim-backend.ts";
import type { CoordinatorState } from "../../src/coordinator/turn/state.ts";
import { runsAlone } from "../../machines/work-item.ts";
import { Idleness } from "../support/idleness.ts";
import type { ReadyItem } from "../support/idleness.ts";
import type { SimWorld } from "./world.ts";
import { Violation } from "./world.ts";
import type { ItemKind } from "./workload.ts";

/** From the settings of the simulated run. */
export interface Budgets {
  readonly maxAttempts: number;
  readonly maxLost: number;
}

type Assigned = Pick<Execution, "isTrial" | "runsAlone"> & { readonly assignedAtMs: number };

/** Longer than a slow disk takes to read, much shorter than anybody's patience. */
const IDLE_MAX_MS = 10_000;

export class Witness {
  readonly #world: SimWorld;
  readonly #journal: Journal;
  readonly #budgets: Budgets;
  #ledger = new ShadowLedger();
  readonly #asked = { mayPass: new Set<string>(), mayBePaused: new Set<string>() };
  readonly #settings: Settings;
  #keys: KeyShadows;
  readonly #clocks = new SteadyClocks();
  readonly #run: RunWitness;
  readonly #releases = new ReleaseWitness();
  readonly lead: LeadWitness;
  /** How an attempt was last assigned: one of a candidate costs its item nothing, and a store that lost it may say otherwise. */
  readonly #assignments = new Map<string, Assigned>();
  /** When a leader gave out an attempt itself, by its name and the leader's epoch; what it took up again it has not given. */
  readonly #givenAtMs = new Map<string, number>();
  /** By worker id, of those that remember it on a disk: the highest epoch of a leader whose work it has begun, and since when. */
  readonly #obeyed = new Map<string, { readonly epoch: number; readonly sinceMs: number }>();
  /** By worker id: the last moment since which the coordinator may take its items away. */
  readonly #failedAtMs = new Map<string, number>();
  /** Ids of workers that leave, as the ledger has it. */
  readonly #draining = new Set<string>();
  /** By worker id: when it said goodbye. */
  readonly #leftAtMs = new Map<string, number>();
  readonly #remembers = new WeakSet<SimProcess>();
  #powerLostAtMs = -Infinity;
  #adopted = 0;
  /** Losses that may be counted against items. */
  #losses = 0;
  readonly #acknowledged = new Set<string>();
  readonly #promisedDone = new Set<string>();
  /** Attempts whose results were acknowledged. */
  readonly #taken = new Set<string>();
  readonly #idleness = new Idleness(IDLE_MAX_MS);
  readonly #drainingSince = new Map<SimProcess, number>();
  readonly #workerOf = new Map<SimProcess, WorkerId>();
  /** Results that were sent while nobody had their items: what they were late for. */
  readonly #usefulLate = new Map<string, string | undefined>();
  /** Results in the outboxes, on disk. */
  readonly #stored = new Set<string>();

  constructor(world: SimWorld, journal: Journal, budgets: Budgets, settings: Settings) {
    this.#world = world;
    this.#settings = settings;
    this.#run = new RunWitness(settings.hasActors);
    this.#keys = new KeyShadows(settings, this.#asked);
    this.#journal = journal;
    this.#budgets = budgets;
    this.lead = new LeadWitness(world);
  }

  /** Several coordinators share the store. */
  share(sharing: Sharing): void {
    this.lead.share(sharing);
  }

  /** The epoch that leads, as the store has it. */
  get epoch(): number {
    return this.lead.epoch;
  }

  /** The store lacks something that was answered as synced. */
  get hasGoneBack(): boolean {
    return this.lead.hasGoneBack;
  }

  /** How often somebody came to lead. */
  get leaderships(): number {
    return this.lead.leaderships;
  }

  /** A process says that it leads. */
  leads(process: SimProcess, epoch: number): void {
    this.#guard(() => this.lead.leads(process, epoch));
  }

  /** Attempts of earlier leaders that a later one has taken up again. */
  get adopted(): number {
    return this.#adopted;
  }

  /** Items that an operator has retried. */
  get retaken(): number {
    return this.#run.retaken;
  }

  get releases(): ReleaseWitness {
    return this.#releases;
  }

  /** An event of a coordinator leaves. */
  event(topic: string, payload: object): void {
    this.#guard(() => this.#releases.event(topic, payload));
  }

  get ledger(): ShadowLedger {
    return this.#ledger;
  }

  /** After each turn of a leader: no work waits beside somebody who could do it. */
  decided(state: CoordinatorState, process: SimProcess): void {
    this.#guard(() => this.#clocks.read(state, process));
    // One that was followed, and does not know it yet, decides nothing.
    if (state.epoch !== this.epoch) return;
    this.#guard(() => {
      const ready = [...this.#ledger.items]
        .filter((item) => isReady(item) && this.#keys.mayBeNext(item.idText))
        .map(({ idText: id, lastAttempt: attempt, budgets }): ReadyItem => ({
          ...{ id, attempt },
          failedBy: budgets?.failedBy ?? "",
          isAlone: budgets !== undefined && runsAlone(budgets),
        }));
      const wrong = this.#idleness.check(state, ready, this.#world.nowMs);
      if (wrong !== undefined) throw new Violation(wrong);
    });
  }

  knows(process: SimProcess, worker: WorkerId): void {
    this.#workerOf.set(process, worker);
  }

  /** Its worker has a disk, and keeps there which leaders it has met. */
  remembersLeaders(process: SimProcess): void {
    this.#remembers.add(process);
  }

  workerDied(): void {
    this.#losses++;
  }

  /** It has drained and ends. If nobody heard of that at all, it is as if it had died. */
  workerLeft(process: SimProcess): void {
    const worker = this.#workerOf.get(process) ?? "";
    const leftAtMs = this.#leftAtMs.get(worker) ?? -Infinity;
    const isHeardOf = leftAtMs >= (this.#drainingSince.get(process) ?? Infinity);
    if (!isHeardOf && !this.#draining.has(worker)) this.#losses++;
  }

  drainAsked(process: SimProcess): void {
    this.#drainingSince.set(process, this.#world.nowMs);
  }

  /** A batch of a coordinator has been carried out. `isDurable`: nothing loses it any more. */
  committed(
    process: SimProcess,
    batch: Batch,
    outcome: CommitOutcome,
    isDurable = batch.durability === "sync",
  ): void {
    if (outcome.kind !== "committed") return;
    this.#guard(() => {
      this.lead.committed(process, batch, isDurable);
      for (const entry of batch.puts) if (entry.key.startsWith(WORKERS_PREFIX)) this.#worker(entry);
      const before = this.#ledger.run?.state ?? "";
      this.#releases.committed(process, batch, { epoch: this.epoch, nowMs: this.#world.nowMs });
      const changes = this.#ledger.take({ ...batch, durability: isDurable ? "sync" : "flush" });
      this.#keys.take(batch, { steadyMs: this.#clocks.nowMs(process), isCancelled: this.#isCancelled });
      this.#run.changed(this.#ledger, changes, { before, epoch: this.epoch });
      for (const change of changes) this.#changed(change);
    });
  }

  /** Everything that has been carried out is durable by now. */
  caughtUp(): void {
    this.lead.caughtUp();
    this.#ledger.caughtUp();
  }

  /** The coordinator's machine lost its power; `entries` are what is on its disk. Promised entries must be there. */
  powerLost(entries: readonly Entry[]): void {
    this.#begunAnew(entries);
    this.#guard(() => this.checkPromises());
  }

  /** The same of a database that is shared. */
  restored(left: Left, how: Return): void {
    const { durable, behind } = left;
    this.lead.restored(left, how);
    this.#begunAnew(durable, behind);
    if (how === "older copy") this.#forgetPromises();
    this.#guard(() => this.checkPromises());
  }

  /** Only what an older copy has was promised. */
  #forgetPromises(): void {
    this.#run.forget();
    this.#releases.forget();
    for (const item of this.#acknowledged)
      if (this.#ledger.get(item) === undefined) this.#acknowledged.delete(item);
    for (const item of this.#promisedDone)
      if (this.#ledger.get(item)?.done === undefined) this.#promisedDone.delete(item);
  }

  /** `behind` the durable rows are batches that may still be lost. */
  #begunAnew(durable: readonly Entry[], behind: readonly Batch[] = []): void {
    this.#powerLostAtMs = this.#world.nowMs;
    this.#guard(() => {
      this.#ledger = new ShadowLedger();
      const inOrder = [...durable].sort((one, other) => rank(one.key) - rank(other.key));
      this.#ledger.take({ puts: inOrder, deletes: [], durability: "sync" });
      this.#keys = new KeyShadows(this.#settings, this.#asked, inOrder);
      for (const batch of behind) {
        this.#ledger.take({ ...batch, durability: "flush" });
        this.#keys.take(batch, { steadyMs: undefined, isCancelled: this.#isCancelled });
      }
      this.#releases.begunAnew(durable, behind, this.epoch, this.#world.nowMs);
    });
  }

  /** C10: what was acknowledged is there. */
  checkPromises(): void {
    for (const item of this.#acknowledged)
      if (this.#ledger.get(item) === undefined)
        throw new Violation(`C10: ${short(item)} was acknowledged and is lost`);
    for (const item of this.#promisedDone)
      if (this.#ledger.get(item)?.done === undefined)
        throw new Violation(`C10: the result of ${short(item)} was acknowledged and is lost`);
    this.#run.checkPromises(this.#ledger);
    this.#releases.checkPromises();
  }

  /** An operator asks to go on without a failed item of this key. */
  skipAsked(key: string): void {
    this.#asked.mayPass.add(key);
  }

  /** An operator asks to pause this key. */
  pauseAsked(key: string): void {
    this.#asked.mayBePaused.add(key);
  }

  /** An operator decides something about the run. */
  decisionAsked(decision: Decision): void {
    this.#run.asked(decision);
  }

  decisionAcknowledged(decision: Decision): void {
    if (this.lead.mayBeLost) return;
    this.#guard(() => this.#run.acknowledged(decision, this.#ledger));
  }

  submissionAcknowledged(items: readonly string[]): void {
    this.#guard(() => {
      for (const item of items) {
        const isWritten = this.#ledger.get(item) !== undefined;
        if (!isWritten && this.lead.mayBeLost) continue;
        if (!isWritten) throw new Violation(`C10: ${short(item)} is acknowledged and not written`);
        this.#acknowledged.add(item);
      }
    });
  }

  /** A batch of results leaves a worker. */
  resultsLeave(process: SimProcess, results: readonly Result[]): void {
    this.#guard(() => {
      for (const result of results)
        if (!this.#stored.has(resultName(result)))
          throw new Violation(`${process.name} sends a result of ${nameOf(result)} that is not on its disk`);
      for (const result of results) this.#usefulLate.set(resultName(result), this.#latenessOf(result));
    });
  }

  /** A worker's disk has results, synced. */
  resultsStored(results: readonly Result[]): void {
    for (const result of results) this.#stored.add(resultName(result));
  }

  /** The coordinator acknowledges these results. */
  resultsAcknowledged(worker: WorkerId, coordEpoch: bigint, results: readonly Result[]): void {
    this.#guard(() => {
      this.lead.speaks(Number(coordEpoch));
      for (const result of results) this.#acknowledgedResult(worker, result);
    });
  }

  /** C2: what is given out is in the ledger before it leaves. */
  assignmentsLeave(worker: WorkerId, coordEpoch: bigint, assignments: readonly Assignment[]): void {
    const epoch = Number(coordEpoch);
    this.#guard(() => this.lead.speaks(epoch));
    // The frames of a leader that was followed were committed when it led.
    if (epoch !== this.epoch) return;
    this.#guard(() => {
      for (const { attempt } of assignments) {
        const item = itemIdText(attempt?.itemId ?? new Uint8Array());
        if (!this.#assignments.has(attemptName(item, attempt?.attempt ?? 0, worker)))
          throw new Violation(`C2: ${short(item)}#${attempt?.attempt} leaves and was never committed`);
      }
    });
  }

  /** C3, C6, and the whole point: nobody starts what is not his, or what somebody else has. */
  started(execution: Execution): void {
    const { item, attempt, worker: process } = execution;
    const worker = this.#workerOf.get(process) ?? "";
    const name = `${short(item)}#${attempt}`;
    const assignment = this.#assignments.get(attemptName(item, attempt, worker));
    Object.assign(execution, assignment);
    this.#guard(() => {
      this.#checkAlone(execution);
      if (this.#drainingSince.has(process))
        throw new Violation(`C6: ${process.name} drains and starts ${name}`);
      const { running, failed } = this.#ledger.get(item) ?? {};
      const isMine = running?.attempt === attempt && running.worker === worker;
      // Items that a cancelled run gave out are dropped as soon as their worker hears of it.
      if (failed?.class === "cancelled" && failed.attempt === attempt && failed.worker === worker) return;
      // A worker that is given up has fenced itself before; only what was lost with the power it cannot know of.
      const wasForgotten = this.#powerLostAtMs >= (execution.assignedAtMs ?? Infinity);
      if (!isMine && !wasForgotten)
        throw new Violation(`${process.name} starts ${name}, which is ${describe(running)}`);
      if (!isMine) return;
      this.#releases.started(execution, running, this.#world.nowMs);
      this.#checkObeyed(process, worker, running, attemptName(item, attempt, worker));
      for (const other of this.#journal.of(item)) if (other !== execution) this.#checkOther(execution, other);
    });
  }

  /** A worker that has begun work of a leader begins nothing that an older one gives it after that, whatever its store has lost. */
  #checkObeyed(process: SimProcess, worker: string, { epoch }: RunningRecord, name: string): void {
    if (!this.#remembers.has(process)) return;
    const before = this.#obeyed.get(worker);
    const givenAtMs = this.#givenAtMs.get(`${name} ${epoch}`) ?? -Infinity;
    if (before !== undefined && epoch < before.epoch && givenAtMs > before.sinceMs)
      throw new Violation(`${process.name} obeys a leader of epoch ${epoch}, and has obeyed ${before.epoch}`);
    if (before === undefined || epoch > before.epoch)
      this.#obeyed.set(worker, { epoch, sinceMs: this.#world.nowMs });
  }

  /** At the end: every item is final, in the one way that its kind allows. `mayLack`: it was not possible to bring in all that was lost. */
  checkEnd(kinds: ReadonlyMap<string, ItemKind>, mayLack: boolean): void {
    this.checkPromises();
    this.lead.checkEnd();
    if (mayLack && this.#ledger.run?.state.startsWith("Open") !== false)
      throw new Violation("the operator was told that the run is sealed, and it is not");
    const isCancelled = this.#isCancelled;
    for (const [item, kind] of kinds) {
      const shadow = this.#ledger.get(item);
      // In a cancelled run, waiting items still wait, and later ones were refused.
      if (isCancelled && (shadow === undefined || !isFinal(shadow) || shadow.failed?.class === "cancelled"))
        continue;
      if (shadow === undefined && mayLack) continue;
      if (shadow === undefined) throw new Violation(`${short(item)} was submitted and is lost`);
      if (this.#keys.isExcused(item)) continue;
      const isFailed = shadow.failed !== undefined && shadow.failed.class !== "poison";
      const shouldFail = kind === "bad" || kind === "big";
      if (isFailed !== shouldFail && shadow.failed?.class !== "poison")
        throw new Violation(`${short(item)} is ${kind} and ended as ${shadow.failed?.class ?? "done"}`);
    }
  }

  get #isCancelled(): boolean {
    return this.#ledger.run?.state === "Cancelled";
  }

  #worker({ key, value }: Entry): void {
    const { state } = okOrFailure("shadow", decodeRecord(workerRecord, key, value));
    const worker = key.slice(WORKERS_PREFIX.length);
    if (state.startsWith("Gone")) this.#leftAtMs.set(worker, this.#world.nowMs);
    if (state.startsWith("Draining")) this.#draining.add(worker);
    else this.#draining.delete(worker);
    if (!state.endsWith("+Failed")) return;
    // The end of an item at a worker that leaves is nobody's fault.
    if (!this.#draining.has(worker)) this.#losses++;
    this.#failedAtMs.set(worker, this.#world.nowMs);
  }

  #changed(change: Change): void {
    const { item } = change;
    switch (change.kind) {
      case "submitted":
        return;
      case "assigned":
        return this.#assigned(item);
      case "retaken":
        return;
      case "returned":
      case "waits":
        return this.#checkBudgets(item);
      case "done":
        return this.#checkDone(item);
      case "failed":
        return this.#checkFailed(item);
    }
  }

  #assigned({ idText, running }: ShadowItem): void {
    if (running === undefined) return;
    const name = attemptName(idText, running.attempt, running.worker);
    const before = this.#assignments.get(name);
    if (before !== undefined && before.assignedAtMs > this.#powerLostAtMs)
      throw new Violation(`C3: attempt ${running.attempt} of ${short(idText)} is given out twice`);
    const how = { isTrial: running.trial !== "", runsAlone: mustRunAlone(running) };
    this.#assignments.set(name, { assignedAtMs: this.#world.nowMs, ...how });
    if (running.epoch < this.epoch) this.#adopted++;
    else this.#givenAtMs.set(`${name} ${running.epoch}`, this.#world.nowMs);
    this.#checkCompany(running);
  }

  /** An item that runs alone is with a worker that has nothing else. */
  #checkCompany({ worker, incarnation }: RunningRecord): void {
    const held = [...this.#ledger.items].flatMap(({ running }) =>
      running?.worker === worker && running.incarnation === incarnation ? running : [],
    );
    if (held.length > 1 && held.some(mustRunAlone))
      throw new Violation(`${worker} is given something beside an item that runs alone`);
  }

  #checkBudgets({ idText, budgets }: ShadowItem): void {
    const failures = this.#errorsOf(idText);
    if (budgets !== undefined && budgets.charged > failures)
      throw new Violation(
        `${short(idText)} was charged ${budgets.charged} times and failed ${failures} times`,
      );
    if (budgets !== undefined && budgets.lost > this.#losses)
      throw new Violation(
        `${short(idText)} was lost ${budgets.lost} times, and workers ${this.#losses} times`,
      );
  }

  #checkDone({ idText, done }: ShadowItem): void {
    if (done === undefined) return;
    const digest = Buffer.from(done.digest).toString("hex");
    const isMade = ({ attempt, worker, output }: Execution): boolean =>
      attempt === done.attempt && this.#workerOf.get(worker) === done.worker && output === digest;
    const made = this.#journal.of(idText).flatMap((each) => (isMade(each) ? each.version : []));
    const name = short(idText);
    if (made.length === 0) throw new Violation(`the result of ${name}#${done.attempt} was never made`);
    // A caller does not say which version it has. Behind an older copy an attempt is made once more, perhaps by another version.
    if (done.pluginVersion !== "" && !made.includes(done.pluginVersion))
      throw new Violation(`V: ${name} is of version ${made.join()}, not ${done.pluginVersion}`);
  }

  #checkFailed({ idText, failed }: ShadowItem): void {
    const errors = this.#errorsOf(idText);
    if (failed?.class === "error" && errors < this.#budgets.maxAttempts && !this.#keys.isExcused(idText))
      throw new Violation(`${short(idText)} failed for good after ${errors} failures`);
    if (failed?.class === "poison" && this.#losses < this.#budgets.maxLost)
      throw new Violation(`${short(idText)} is called poison after ${this.#losses} losses`);
  }

  /** Since it was submitted, or retried. */
  #errorsOf(idText: string): number {
    const from = this.#run.retakenFrom(idText);
    const since = this.#journal.of(idText).filter(({ attempt, isTrial }) => attempt > from && !isTrial);
    const isFailure = ({ outcome, runsAlone: isAlone }: Execution): boolean =>
      outcome === "error" || (outcome === "crash_shared" && isAlone);
    return since.filter(isFailure).length;
  }

  #acknowledgedResult(worker: WorkerId, result: Result): void {
    const idText = itemIdText(result.attempt?.itemId ?? new Uint8Array());
    this.#taken.add(attemptName(idText, result.attempt?.attempt ?? 0, worker));
    const item = this.#ledger.get(idText);
    const { running } = item ?? {};
    const isStillRunning =
      running?.attempt === result.attempt?.attempt &&
      running?.worker === worker &&
      running.epoch === Number(result.epoch) &&
      running.incarnation === parseUlidBytes<IncarnationId>(result.incarnation);
    if (isStillRunning && this.lead.mayBeLost) return;
    if (isStillRunning)
      throw new Violation(`C10: the result of ${nameOf(result)} is acknowledged and not recorded`);
    const lateness = this.#usefulLate.get(resultName(result));
    const isUseful = lateness !== undefined && lateness === this.#latenessOf(result);
    if (isUseful && this.lead.mayBeLost) return;
    if (isUseful)
      throw new Violation(`C10: the late result of ${nameOf(result)} is acknowledged and not recorded`);
    const isRecorded = item?.done?.attempt === result.attempt?.attempt && item?.done?.worker === worker;
    if (item === undefined || !isRecorded || result.outcome !== OutcomeClass.SUCCESS) return;
    if (!this.#ledger.isOnDisk(item))
      throw new Violation(`C10: the result of ${nameOf(result)} is not synced`);
    this.#promisedDone.add(item.idText);
  }

  /** Which pending of its item a late success can end; undefined when it is of no use. The same again: nothing came between. */
  #latenessOf({ attempt, outcome }: Result): string | undefined {
    const idText = itemIdText(attempt?.itemId ?? new Uint8Array());
    if (this.#isCancelled || this.#keys.has(idText)) return undefined;
    const { budgets, running, done, failed } = this.#ledger.get(idText) ?? {};
    if (budgets === undefined || (running ?? done ?? failed) !== undefined) return undefined;
    const isOfUse = outcome === OutcomeClass.SUCCESS && (attempt?.attempt ?? 0) <= budgets.attempt;
    return isOfUse ? `${budgets.attempt} ${this.#powerLostAtMs}` : undefined;
  }

  /** Two executions of one item: the earlier one's worker must have been lost, or have failed or given up itself. */
  #checkOther(execution: Execution, other: Execution): void {
    const name = `${short(execution.item)}#${execution.attempt}`;
    // A trial that was too large has failed nothing: its item is tried again.
    const isNoResult = other.isTrial && other.isTooLarge;
    const isOver = isNoResult || (other.outcome !== undefined && ENDED_WITHOUT_RESULT.has(other.outcome));
    const worker = this.#workerOf.get(other.worker) ?? "";
    if (isOver || this.#lostSince(other, worker) || !other.worker.isAlive) return;
    if (other.endedAtMs !== undefined && this.#leftUndelivered(other, worker)) return;
    // Its result was final, and an operator wanted it anew.
    if (other.endedAtMs !== undefined && other.attempt <= this.#run.retakenFrom(other.item)) return;
    const what = other.endedAtMs === undefined ? "still executes" : "has executed";
    throw new Violation(
      `${execution.worker.name} starts ${name}, which ${other.worker.name} ${what} as #${other.attempt}`,
    );
  }

  /** Nothing executes beside an item that runs alone, whoever of the two came first. */
  #checkAlone(execution: Execution): void {
    const besides = this.#journal.at(execution.worker).filter((other) => other !== execution);
    if (besides.length === 0) return;
    const isAlone = ({ item, attempt, worker }: Execution): boolean => {
      const { running } = this.#ledger.get(item) ?? {};
      const isIt = running?.attempt === attempt && running.worker === this.#workerOf.get(worker);
      return isIt && mustRunAlone(running);
    };
    const alone = [execution, ...besides].find(isAlone);
    if (alone !== undefined)
      throw new Violation(
        `${execution.worker.name} executes ${short(alone.item)}#${alone.attempt} beside others`,
      );
  }

  /** Whether the coordinator had a reason to give the attempt away since it was assigned. */
  #lostSince({ assignedAtMs }: Execution, worker: string): boolean {
    const lostAtMs = Math.max(this.#powerLostAtMs, this.#failedAtMs.get(worker) ?? -Infinity);
    return assignedAtMs !== undefined && lostAtMs >= assignedAtMs;
  }

  /** A worker that drains does not wait for ever for whoever should take its results. */
  #leftUndelivered({ item, attempt, startedAtMs }: Execution, worker: string): boolean {
    const hasLeft = (this.#leftAtMs.get(worker) ?? -Infinity) >= startedAtMs;
    return hasLeft && !this.#taken.has(attemptName(item, attempt, worker));
  }

  #guard(check: () => void): void {
    try {
      check();
    } catch (violation) {
      this.#world.violate(violation);
    }
  }
}

const ENDED_WITHOUT_RESULT: ReadonlySet<NonNullable<Execution["outcome"]>> = new Set([
  "error",
  "preempted",
  "crash_shared",
  "died",
]);

/** Two workers were lost with it, or what it shared with others has died. */
function mustRunAlone({ lost, isApart }: RunningRecord): boolean {
  return isApart || lost >= 2;
}

/** Rows of items come first: the others are of them. */
function rank(key: string): number {
  return key.startsWith("items/") ? 0 : 1;
}
