// The room of releases, as the rest of the coordinator has it: which version an item gets on a worker, that an attempt was given out, that
// it has ended, and that a turn ends. A run without releases costs it nothing: not a row, and not an object for an item.
//
// In the room: `operator` begins one and ends it, `release` is one in memory, `course` moves it and its stages by their charts.
// `arms` decides which version an item gets, `attempts` and `counts` know what became of it, `verdict` judges, and `promoters` look at that.
// `records` stores them, `replay-releases` reads them back; `ports` is the coordinator as the room sees it.
import type { Damage } from "../../storage/codec.ts";
import { encodeRecord, recordChecksum } from "../../storage/codec.ts";
import { RELEASES_KEY } from "../../storage/keys.ts";
import { chosenWorkers, hasVersion, isInShare, ownRuns, seedOf } from "./arms.ts";
import type { Arm, Desk } from "./arms.ts";
import { Attempts } from "./attempts.ts";
import type { MarkedAttempt } from "./attempts.ts";
import type { StageCounts } from "./counts.ts";
import { decide, promote, writeRelease } from "./course.ts";
import type { Ended, ReleaseTurn, ReleaseWorker, RunFacts } from "./ports.ts";
import { Promoters } from "./promoters.ts";
import { countsKey, countsRecord, releasesRecord } from "./records.ts";
import type { ReleasesRecord } from "./records.ts";
import { currentStage, isOver, releaseStateOf } from "./release.ts";
import type { Release, Stage, Version } from "./release.ts";
import { judge } from "./verdict.ts";
import type { Crew, Verdict } from "./verdict.ts";

/** The version that an assignment names: see `Stamp` of items. */
export interface ReleaseStamp {
  /** Empty: the worker's own. */
  readonly version: string;
  /** The release whose candidate that is; empty: none's. */
  readonly trial: string;
}

export interface Pointer {
  readonly name: string;
  readonly pointer: string;
}

interface ReleasesOptions {
  /** Undefined: there has been no release. */
  readonly record: ReleasesRecord | undefined;
  /** The one that began last. */
  readonly latest: Release | undefined;
  /** Attempts of its candidate that workers have. */
  readonly open: number;
  /** Monotonic. */
  readonly nowMs: number;
}

/** Tasks of completed releases that are remembered. */
const DIGESTS_MAX = 16;
/** In place of the id of a release that is not there; its candidate's attempts are trials all the same. */
const UNKNOWN_RELEASE = "unknown";
const OWN: ReleaseStamp = { version: "", trial: "" };
const NOBODY: ReadonlySet<string> = new Set();
const NOTHING_WRITTEN = { revision: 0, checksum: 0 };

export class Releases {
  #latest: Release | undefined;
  #reached: Version | undefined;
  #digests: readonly Uint8Array[];
  readonly #attempts = new Attempts();
  readonly #promoters: Promoters;
  /** The stage that attempts and counts are of. */
  #stage: Stage | undefined;
  #hasJudged = false;
  #isDirty = false;
  #lastWritten = NOTHING_WRITTEN;
  // The latest release, as it matters to each assignment.
  #isRolling = false;
  #seed = 0;
  #stable = OWN;
  #candidate = OWN;
  #pointers: readonly Pointer[] | undefined;
  /** The workers that get the candidate alone, in a stage of workers. */
  #chosen = NOBODY;

  constructor({ record, latest, open, nowMs }: ReleasesOptions) {
    this.#latest = latest;
    this.#reached = record?.reached;
    this.#digests = record?.digests ?? [];
    this.#promoters = new Promoters(nowMs);
    this.#follow();
    const counts = this.#counts;
    if (counts === undefined || latest === undefined) return;
    this.#stage = currentStage(latest);
    // Before the open ones are counted anew: the row says what the leader before has counted.
    this.#noteWritten(counts, encodeRecord(countsRecord, this.#key(latest), counts));
    this.#attempts.restore(counts, open);
  }

  /** The release that began last. */
  get latest(): Release | undefined {
    return this.#latest;
  }

  /** Whether a release is under way. */
  get isLive(): boolean {
    return this.underWay !== "";
  }

  /** Its id; empty: none is. */
  get underWay(): string {
    return this.#latest === undefined || isOver(this.#latest) ? "" : this.#latest.id;
  }

  /** Whether something is tried now. */
  get isRolling(): boolean {
    return this.#isRolling;
  }

  /** The version that all items get; undefined while no release was completed. */
  get reached(): Version | undefined {
    return this.#reached;
  }

  /** Whether the task is one that the run has come to by a release. */
  hasReached(digest: Uint8Array): boolean {
    return this.#digests.some((one) => Buffer.compare(one, digest) === 0);
  }

  /** The release that is trying the task; undefined: none is. */
  triedBy(digest: Uint8Array): string | undefined {
    const latest = this.#latest;
    if (latest === undefined || isOver(latest)) return undefined;
    return Buffer.compare(latest.candidate.digest, digest) === 0 ? latest.id : undefined;
  }

  /** The task that the run executes now; `first` is the one that it began with. */
  currentDigest(first: Uint8Array): Uint8Array {
    return this.#reached?.digest ?? first;
  }

  /** Whether the worker can execute items that are not on trial. */
  serves(worker: ReleaseWorker, plugin: string, first: Uint8Array): boolean {
    if (this.#reached !== undefined) return hasVersion(worker, plugin, this.#reached);
    return ownRuns(worker, plugin, first);
  }

  hasCandidate(worker: ReleaseWorker): boolean {
    const latest = this.#latest;
    if (latest === undefined) return false;
    const isAble = latest.terms.stages[0]?.kind === "workers" || worker.loadedVersions !== 1;
    return isAble && hasVersion(worker, latest.plugin, latest.candidate);
  }

  /** The worker's part in the current stage. */
  deskOf(worker: ReleaseWorker): Desk {
    if (!this.#isRolling || this.#latest === undefined || !this.hasCandidate(worker)) return "none";
    if (currentStage(this.#latest).spec.kind === "items") return "by item";
    return this.#chosen.has(worker.id) ? "candidate" : "stable";
  }

  /** `isClean`: no attempt of the item was charged, no loss of it counted, and no checkpoint of another version is there. */
  armOf(desk: Desk, itemId: Uint8Array, isClean: boolean): Arm {
    if (desk === "none" || !isClean || this.#latest === undefined) return "none";
    if (desk !== "by item") return desk;
    const { spec } = currentStage(this.#latest);
    return isInShare(itemId, this.#seed, spec.kind === "items" ? spec.share : 0) ? "candidate" : "stable";
  }

  stampOf(arm: Arm): ReleaseStamp {
    return arm === "candidate" ? this.#candidate : this.#stable;
  }

  /**
   * The stamp of an assignment that named this version, and that an earlier leader has forgotten. A version that this store has never heard of
   * was tried by a release that it lacks: it is an older copy.
   */
  stampNamed(version: string): ReleaseStamp {
    const stable = ["", this.#stable.version, this.#latest?.stable.version];
    if (stable.includes(version)) return { version, trial: "" };
    return version === this.#candidate.version ? this.#candidate : { version, trial: UNKNOWN_RELEASE };
  }

  /** The numbers that are looked for in outputs, in the order of the metrics; undefined when none are. */
  get pointers(): readonly Pointer[] | undefined {
    return this.#pointers;
  }

  /** An attempt was given out: its ticket, for `ended`. 0 for one that nobody judges. */
  given(arm: Arm): number {
    const counts = this.#counts;
    if (arm === "none" || counts === undefined) return 0;
    this.#isDirty = true;
    return this.#attempts.given(counts, arm);
  }

  /** An attempt that an earlier leader gave out and forgot is adopted: `trial` as in its stamp. */
  adopted(trial: string): void {
    const counts = this.#counts;
    if (counts === undefined || trial === "" || trial !== this.#latest?.id) return;
    this.#isDirty = true;
    this.#attempts.adopted(counts);
  }

  /** An attempt has ended, in whatever way. */
  ended(attempt: MarkedAttempt, ended: Ended): void {
    if (this.#latest === undefined || isOver(this.#latest)) return;
    const { closed, judged } = this.#attempts.ended(this.#latest, attempt, ended);
    this.#hasJudged ||= judged;
    this.#isDirty ||= judged || closed;
  }

  /** Called in each turn while a release is under way, before items are given out. */
  beforeDispatch(turn: ReleaseTurn, facts: () => RunFacts, isRunOver: boolean): void {
    const latest = this.#latest;
    this.#attempts.turnBegins();
    if (latest === undefined || isOver(latest)) return;
    const counts = this.#counts;
    if (isRunOver) {
      const end = (): boolean => decide(turn, latest, "run.over", { reason: "the run is over", by: "" });
      this.decided(turn, latest, end, facts);
    } else if (this.#hasJudged && counts !== undefined)
      this.#promoters.stream(turn, counts, this.#acts(turn, facts));
    this.#hasJudged = false;
  }

  /** Called in each turn when nothing more is given out: the counts go into its batch. */
  turnEnds(turn: ReleaseTurn): void {
    const counts = this.#counts;
    if (!this.#isDirty || this.#latest === undefined || counts === undefined) return;
    this.#isDirty = false;
    counts.revision++;
    const key = this.#key(this.#latest);
    const value = encodeRecord(countsRecord, key, counts);
    turn.put({ key, value });
    this.#noteWritten(counts, value);
    this.#promoters.noteWritten(key, this.#lastWritten);
  }

  /** Called at each scan while a release is under way. */
  onTick(turn: ReleaseTurn, facts: RunFacts): void {
    const latest = this.#latest;
    if (latest === undefined || isOver(latest)) return;
    this.#choose(facts);
    this.#noteWaiting(turn, latest, facts);
    // Before the first attempt there are no counts, and nothing to decide.
    if (this.#lastWritten.revision > 0) this.#promoters.tick(turn, this.#key(latest), this.#lastWritten);
  }

  /** Counts that the batch promoter has asked for. Returns the damage, if they are not those of the turns. */
  onCountsRead(
    turn: ReleaseTurn,
    read: { readonly key: string; readonly value: Uint8Array | undefined },
    facts: () => RunFacts,
  ): Damage | undefined {
    return this.#promoters.onRead(turn, read, this.#acts(turn, facts));
  }

  /** Whether this coordinator leads, by the store's word. The verdict may be another one by now. */
  onLeadershipConfirmed(turn: ReleaseTurn, leads: boolean, facts: () => RunFacts): void {
    this.#promoters.confirmed();
    const latest = this.#latest;
    const verdict = this.verdictNow(turn, facts);
    if (!leads || latest === undefined || verdict === undefined) return;
    this.decided(turn, latest, () => carryOut(turn, latest, verdict), facts);
  }

  /** A release begins, or is moved by `step`, which says whether something has changed. */
  decided(turn: ReleaseTurn, release: Release, step: () => boolean, facts: () => RunFacts): void {
    // Attempts that were counted belong to the stage in which they were.
    this.turnEnds(turn);
    this.#latest = release;
    if (!step()) return;
    if (releaseStateOf(release) === "Completed") {
      this.#reached = release.candidate;
      this.#digests = [...this.#digests, release.candidate.digest].slice(-DIGESTS_MAX);
    }
    const record = { latest: release.id, reached: this.#reached, digests: this.#digests };
    turn.put({ key: RELEASES_KEY, value: encodeRecord(releasesRecord, RELEASES_KEY, record) });
    this.#follow();
    if (currentStage(release) !== this.#stage) this.#beginStage(release);
    this.#choose(facts());
  }

  /** Undefined when no release is under way. */
  verdictNow(turn: Pick<ReleaseTurn, "steadyMs">, facts: () => RunFacts): Verdict | undefined {
    const counts = this.#counts;
    return counts && this.#verdictBy(turn, counts, facts);
  }

  /** Ready workers, and those with both versions. */
  crewOf({ ready }: Pick<RunFacts, "ready">): Crew {
    return { ready: ready.length, withCandidate: ready.filter((worker) => this.hasCandidate(worker)).length };
  }

  get #counts(): StageCounts | undefined {
    return this.#latest === undefined || isOver(this.#latest) ? undefined : currentStage(this.#latest).counts;
  }

  #key(release: Release): string {
    return countsKey(release.id, currentStage(release).number);
  }

  #noteWritten({ revision }: StageCounts, value: Uint8Array): void {
    this.#lastWritten = { revision, checksum: recordChecksum(value) };
  }

  /** Whether the verdict asks for a step that the chart would take. */
  #acts(turn: ReleaseTurn, facts: () => RunFacts): (counts: StageCounts) => boolean {
    return (counts) => {
      if (this.#latest === undefined || isOver(this.#latest)) return false;
      const { heldBy, isUnlimited, holdsOnBreach } = this.#latest.row.context;
      switch (this.#verdictBy(turn, counts, facts).kind) {
        case "hold":
          return false;
        case "breach":
          return heldBy === null || !holdsOnBreach;
        case "limit":
          return heldBy === null && !isUnlimited;
        case "promote":
          return heldBy === null;
      }
    };
  }

  #verdictBy(
    { steadyMs }: Pick<ReleaseTurn, "steadyMs">,
    counts: StageCounts,
    facts: () => RunFacts,
  ): Verdict {
    const latest = this.#latest;
    if (latest === undefined) return { kind: "hold", reason: "there is no release" };
    const { number, row } = currentStage(latest);
    const openForMs = steadyMs - (row.context.openedAtMs ?? steadyMs);
    return judge({ terms: latest.terms, stage: number, counts, openForMs, crew: () => this.crewOf(facts()) });
  }

  #follow(): void {
    const latest = this.#latest;
    this.#stable = this.#reached === undefined ? OWN : { version: this.#reached.version, trial: "" };
    this.#isRolling = false;
    this.#chosen = NOBODY;
    if (latest === undefined) return;
    this.#isRolling = releaseStateOf(latest) === "Rolling";
    this.#seed = seedOf(latest.id);
    this.#candidate = { version: latest.candidate.version, trial: latest.id };
    const numbers = latest.terms.metrics.filter((metric) => metric.kind === "number");
    this.#pointers =
      numbers.length === 0 ? undefined : numbers.map(({ name, pointer }) => ({ name, pointer }));
  }

  #beginStage(release: Release): void {
    this.#stage = currentStage(release);
    this.#attempts.beginStage();
    this.#hasJudged = false;
    this.#lastWritten = NOTHING_WRITTEN;
  }

  #choose({ ready }: RunFacts): void {
    const latest = this.#latest;
    if (latest === undefined || !this.#isRolling) return;
    const { spec } = currentStage(latest);
    if (spec.kind !== "workers") return;
    const able = ready.filter((worker) => this.hasCandidate(worker));
    this.#chosen = chosenWorkers(latest.id, able, { count: spec.workers, ready: ready.length });
  }

  #noteWaiting(turn: ReleaseTurn, latest: Release, facts: RunFacts): void {
    const isWaiting = this.#isRolling && facts.itemsWithoutKey > 0 && this.crewOf(facts).withCandidate === 0;
    if (isWaiting === latest.isWaiting) return;
    latest.isWaiting = isWaiting;
    writeRelease(turn, latest);
    if (!isWaiting) return;
    turn.emit("release_waits_for_workers", {
      ...{ release: latest.id, stage: currentStage(latest).number },
      candidate_version: latest.candidate.version,
    });
  }
}

/** The step that a verdict asks for. False when there is none. */
function carryOut(turn: ReleaseTurn, release: Release, { kind, reason }: Verdict): boolean {
  const decision = { reason, by: "" };
  switch (kind) {
    case "hold":
      return false;
    case "breach":
      return decide(turn, release, "verdict.breached", decision);
    case "limit":
      return decide(turn, release, "verdict.inconclusive", decision);
    case "promote":
      return promote(turn, release, decision);
  }
}
