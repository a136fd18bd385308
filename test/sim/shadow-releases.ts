// Releases as the batches of coordinators tell them, kept beside the room of releases and without any of its code: what may follow on
// what, whose an item is, and what was given out and judged are written down here a second time.
//
// Keeps true: after every batch a stage that has ended is as it was, and ended knowing its row; nothing is given to a candidate that is
// not tried; its items are those of its share, and unharmed; a trial has changed nothing of its item but who has tried it; counts
// are in the batch of what they count.
import { createHash } from "node:crypto";
import {
  delayedRecord,
  doneRecord,
  failedRecord,
  returnedRecord,
  runningRecord,
} from "../../src/coordinator/ledger/records.ts";
import type { ReturnedRecord, RunningRecord } from "../../src/coordinator/ledger/records.ts";
import {
  countsRecord,
  releaseRecord,
  releasesRecord,
  stageRecord,
} from "../../src/coordinator/release/records.ts";
import type { ReleaseRecord } from "../../src/coordinator/release/records.ts";
import type { Standing } from "../../src/runtime/standing.ts";
import type { StageCounts } from "../../src/coordinator/release/counts.ts";
import type { RecordType } from "../../src/storage/codec.ts";
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import {
  DELAYED_PREFIX,
  DONE_PREFIX,
  FAILED_PREFIX,
  RELEASES_KEY,
  RELEASES_PREFIX,
  RETURNED_PREFIX,
  RUNNING_PREFIX,
} from "../../src/storage/keys.ts";
import type { Batch, Entry } from "../../src/storage/store.ts";
import { Violation } from "./world.ts";

const OVER: ReadonlySet<string> = new Set(["Completed", "RolledBack", "Aborted", "Ended"]);
const ENDED: ReadonlySet<string> = new Set(["Promoted", "Breached", "Abandoned"]);

interface ShadowStage {
  readonly number: number;
  /** Its row. */
  value: Uint8Array | undefined;
  state: string;
  counts: StageCounts | undefined;
  /** Attempts of the candidate that were given out to be judged, and those that may and must have been. */
  given: number;
  judged: { least: number; most: number };
}

interface ShadowRelease {
  readonly id: string;
  readonly record: ReleaseRecord;
  readonly state: string;
  /** Counts from 1. */
  readonly stage: number;
  /** The one who has decided last; empty: the verdict. */
  readonly by: string;
}

/** An attempt that somebody has. */
interface Having {
  readonly record: RunningRecord;
  /** The stage in which it was given out; 0 for one of an earlier leader, which nobody judges. */
  readonly stage: number;
  /** It was found in a store that came back: its leader may live, or not, and may have moved the stage since. */
  readonly isFound?: boolean;
}

/** A batch of a leader, as far as releases matter. */
type Taken = Pick<Batch, "puts" | "deletes" | "expect">;

export class ShadowReleases {
  readonly #releases = new Map<string, ShadowRelease>();
  readonly #stages = new Map<string, ShadowStage>();
  readonly #having = new Map<string, Having>();
  #reached: string | undefined;
  #latest: string | undefined;

  /** The release that began last. */
  get latest(): ShadowRelease | undefined {
    return this.#latest === undefined ? undefined : this.#releases.get(this.#latest);
  }

  stateOf(release: string): string | undefined {
    return this.#releases.get(release)?.state;
  }

  phaseOf(release: string, stage: number): string | undefined {
    return this.#stages.get(`${release} ${stage}`)?.state;
  }

  /**
   * Throws a violation. `epoch` is that of the leader that has written it. Returns how many steps of releases in it were asked for by
   * nobody but the verdict.
   */
  take(batch: Taken, epoch: number): number {
    const before = this.latest;
    const verdicts = this.#takeReleases(batch, true);
    const isMoved = before?.state !== this.latest?.state || before?.stage !== this.latest?.stage;
    this.#takeEnds(batch, epoch, isMoved);
    for (const [place, record] of running(batch.puts)) this.#begins(place, record, epoch);
    this.#takeCounts(batch);
    return verdicts;
  }

  /** All that a store has. */
  load(puts: readonly Entry[]): void {
    this.#takeReleases({ puts, expect: [] }, false);
    for (const { key, value } of under(puts, RELEASES_PREFIX)) {
      const [, id = "", number = ""] = COUNTS.exec(key) ?? [];
      if (id !== "") this.#rebase(id, Number(number), read(countsRecord, key, value));
    }
    for (const [place, record] of running(puts)) {
      const stage = this.#releases.get(record.trial)?.stage ?? 0;
      this.#having.set(place, { record, stage, isFound: true });
    }
  }

  #takeReleases({ puts, expect }: Pick<Taken, "puts" | "expect">, isStep: boolean): number {
    for (const { key, value } of under(puts, RELEASES_PREFIX)) {
      const [, id = "", number = ""] = STAGE.exec(key) ?? [];
      if (id !== "") this.#moveStage(id, Number(number), { key, value }, isStep ? expect : undefined);
    }
    let verdicts = 0;
    for (const entry of under(puts, RELEASES_PREFIX))
      if (RELEASE.test(entry.key)) verdicts += this.#moveRelease(entry, isStep);
    for (const { key, value } of puts)
      if (key === RELEASES_KEY) this.#takeReached(read(releasesRecord, key, value));
    return verdicts;
  }

  #takeReached({
    latest,
    reached,
  }: {
    readonly latest: string;
    readonly reached: { readonly version: string } | undefined;
  }): void {
    this.#latest = latest;
    const release = this.#releases.get(latest);
    if (release === undefined) throw new Violation(`R: release ${latest} is the latest and has no row`);
    if (reached?.version === this.#reached) return;
    if (release.state !== "Completed" || reached?.version !== release.record.candidate.version)
      throw new Violation(
        `R: the run has reached version ${reached?.version}, and ${latest} is ${release.state}`,
      );
    this.#reached = reached.version;
  }

  /** Returns 1 when nobody but the verdict has asked for the step, else 0. */
  #moveRelease({ key, value }: Entry, isStep: boolean): number {
    const id = key.slice(RELEASES_PREFIX.length);
    const record = read(releaseRecord, key, value);
    const { stage, by } = record.standing.context as { stage: number; by: string };
    const before = this.#releases.get(id);
    const { state } = record.standing;
    const after = { id, record, state, stage, by };
    this.#releases.set(id, after);
    if (isStep && before !== undefined && OVER.has(before.state) && state !== before.state)
      throw new Violation(`R: release ${id} was ${before.state} and is ${state}`);
    for (const other of this.#releases.values())
      if (other.id !== id && !OVER.has(other.state) && !OVER.has(state))
        throw new Violation(`R: releases ${other.id} and ${id} are under way together`);
    this.#checkStages(after);
    const isMoved = before !== undefined && (before.state !== state || before.stage !== stage);
    return isStep && isMoved && by === "" && state !== "Ended" ? 1 : 0;
  }

  /** A release and its stages say the same. */
  #checkStages({ id, record, state, stage }: ShadowRelease): void {
    const phases = record.terms.stages.map((_, at) => this.phaseOf(id, at + 1) ?? "without a row");
    const expected = phases.map((_, at) => {
      if (at + 1 < stage || state === "Completed") return "Promoted";
      if (!OVER.has(state)) return at + 1 === stage ? "Active" : "Waiting";
      return at + 1 === stage && state === "RolledBack" ? "Breached" : "Abandoned";
    });
    if (phases.join() !== expected.join())
      throw new Violation(
        `R: release ${id} is ${state} in stage ${stage}, and its stages are ${phases.join()}`,
      );
  }

  #moveStage(id: string, number: number, { key, value }: Entry, expect: Taken["expect"] | undefined): void {
    const stage = this.#stageOf(id, number);
    const { state }: Standing = read(stageRecord, key, value);
    const before = stage.value;
    if (before !== undefined && ENDED.has(stage.state) && !isSame(before, value))
      throw new Violation(`R4: stage ${number} of ${id} was ${stage.state} and is written again as ${state}`);
    const wasSeen = expect?.some((row) => row.key === key && row.value !== null && isSame(row.value, before));
    if (expect !== undefined && stage.state === "Active" && ENDED.has(state) && wasSeen !== true)
      throw new Violation(`R4: stage ${number} of ${id} becomes ${state}, and its row is not expected`);
    stage.value = value;
    stage.state = state;
  }

  /** Attempts that somebody had until this batch. `isMoved`: the stage is another one in it, so they may be of either. */
  #takeEnds({ puts, deletes }: Taken, epoch: number, isMoved: boolean): void {
    for (const key of deletes) {
      if (!key.startsWith(RUNNING_PREFIX)) continue;
      const place = key.slice(RUNNING_PREFIX.length);
      const having = this.#having.get(place);
      this.#having.delete(place);
      if (having !== undefined && having.record.trial !== "")
        this.#trialEnds(having, place, puts, { epoch, isMoved });
    }
  }

  #trialEnds(
    { record, stage, isFound = false }: Having,
    place: string,
    puts: readonly Entry[],
    { epoch, isMoved }: { readonly epoch: number; readonly isMoved: boolean },
  ): void {
    const { trial, attempt } = record;
    const counted = this.#stageOf(trial, stage);
    const mayCount = record.epoch === epoch && stage > 0;
    const isCurrent = this.#releases.get(trial)?.stage === stage && !OVER.has(this.stateOf(trial) ?? "");
    for (const { key, value } of puts) {
      if (!key.endsWith(place)) continue;
      if (key.startsWith(FAILED_PREFIX) && read(failedRecord, key, value).class !== "cancelled")
        throw new Violation(`V3: attempt ${attempt} at ${place} was on trial, and its item has failed`);
      if (key.startsWith(RETURNED_PREFIX) || key.startsWith(DELAYED_PREFIX)) {
        const back = read(key.startsWith(RETURNED_PREFIX) ? returnedRecord : delayedRecord, key, value);
        checkUncharged(place, record, back);
        if (mayCount && back.tried === trial && (isCurrent || isMoved)) counted.judged.most++;
      }
      if (!key.startsWith(DONE_PREFIX) || read(doneRecord, key, value).attempt !== attempt || !mayCount)
        continue;
      if (isCurrent || isMoved) counted.judged.most++;
      if (isCurrent && !isMoved && !isFound) counted.judged.least++;
    }
  }

  #begins(place: string, record: RunningRecord, epoch: number): void {
    const before = this.#having.get(place);
    const { trial, id } = record;
    if (before !== undefined && before.record.trial !== "") checkUncharged(place, before.record, record);
    const release = trial === "" ? undefined : this.#releases.get(trial);
    this.#having.set(place, { record, stage: record.epoch === epoch ? (release?.stage ?? 0) : 0 });
    if (record.epoch !== epoch) return this.#checkTakenUp(place, record);
    this.#checkVersion(place, record);
    if (trial === "") return;
    if (release?.state !== "Rolling")
      throw new Violation(
        `R: the item at ${place} is given to the candidate of ${trial}, which is ${release?.state}`,
      );
    if (record.charged > 0 || record.lost > 0 || record.isApart || record.tried === trial)
      throw new Violation(`R1: the item at ${place} is tried, and something has happened to it`);
    const spec = release.record.terms.stages[release.stage - 1];
    if (spec?.kind === "items" && !isOfShare(trial, id, spec.share))
      throw new Violation(`R5: the item at ${place} is not of the share of ${trial}`);
    this.#stageOf(trial, release.stage).given++;
  }

  /** An earlier leader's: of a version that the run has never had for all items, it was a trial, also where an older copy lacks its release. */
  #checkTakenUp(place: string, { trial, version }: RunningRecord): void {
    const had = ["", this.#reached, this.latest?.record.stable.version];
    if (trial === "" && !had.includes(version))
      throw new Violation(
        `V3: the item at ${place} is taken up under version "${version}", and is on no trial`,
      );
  }

  /** An assignment names the version that its item is to be executed by. */
  #checkVersion(place: string, { trial, version }: RunningRecord): void {
    const candidate = this.#releases.get(trial)?.record.candidate.version;
    const expected = trial === "" ? (this.#reached ?? "") : candidate;
    if (version !== expected)
      throw new Violation(
        `V: the item at ${place} is given out as of version "${version}", not "${expected}"`,
      );
  }

  #takeCounts({ puts }: Taken): void {
    for (const { key, value } of under(puts, RELEASES_PREFIX)) {
      const [, id = "", number = ""] = COUNTS.exec(key) ?? [];
      if (id === "") continue;
      const stage = this.#stageOf(id, Number(number));
      const counts = read(countsRecord, key, value);
      if (counts.revision <= (stage.counts?.revision ?? 0))
        throw new Violation(
          `R2: counts of stage ${number} of ${id} are of revision ${counts.revision} again`,
        );
      stage.counts = counts;
    }
    for (const [name, { counts, given, judged }] of this.#stages) {
      if (given !== (counts?.candidate.given ?? 0))
        throw new Violation(
          `R2: ${counts?.candidate.given ?? 0} of ${given} attempts of ${name} are counted`,
        );
      const counted = counts?.candidate.judged ?? 0;
      if (counted < judged.least || counted > judged.most)
        throw new Violation(
          `R2: ${counted} attempts of ${name} are judged, not ${judged.least} to ${judged.most}`,
        );
    }
  }

  /** Attempts of before are judged by nobody. */
  #rebase(id: string, number: number, counts: StageCounts): void {
    const stage = this.#stageOf(id, number);
    const { given, judged } = counts.candidate;
    Object.assign(stage, { counts, given, judged: { least: judged, most: judged } });
  }

  #stageOf(id: string, number: number): ShadowStage {
    const name = `${id} ${number}`;
    const known = this.#stages.get(name);
    if (known !== undefined) return known;
    const stage: ShadowStage = {
      ...{ number, value: undefined, state: "", counts: undefined, given: 0 },
      judged: { least: 0, most: 0 },
    };
    this.#stages.set(name, stage);
    return stage;
  }
}

const RELEASE = /^releases\/[0-9A-Z]{26}$/;
const STAGE = /^releases\/([0-9A-Z]{26})\/stages\/(\d+)$/;
const COUNTS = /^releases\/([0-9A-Z]{26})\/counts\/(\d+)$/;

/** The item has what it had before its trial, but for who has tried it. */
function checkUncharged(place: string, before: RunningRecord, after: ReturnedRecord): void {
  const said = ({ charged, lost, isApart, failedBy, blamed }: ReturnedRecord): string =>
    JSON.stringify([charged, lost, isApart, failedBy, blamed]);
  if (said(before) !== said(after))
    throw new Violation(
      `V3: a trial has cost the item at ${place} something: ${said(before)} ${said(after)}`,
    );
}

/** The last step of murmur3 over the first four bytes of the item's id and of the hash of the release's. */
function isOfShare(release: string, itemId: Uint8Array, share: number): boolean {
  const seed = createHash("sha256").update(`rollout release 1\0${release}`).digest().readUInt32BE(0);
  let mixed = BigInt(Buffer.from(itemId).readUInt32BE(0) ^ seed) & MASK;
  for (const factor of [0x85ebca6bn, 0xc2b2ae35n]) {
    mixed ^= mixed >> (factor === 0x85ebca6bn ? 16n : 13n);
    mixed = (mixed * factor) & MASK;
  }
  mixed ^= mixed >> 16n;
  return Number(mixed) < share * 2 ** 32;
}

const MASK = 0xffff_ffffn;

function running(puts: readonly Entry[]): [string, RunningRecord][] {
  return under(puts, RUNNING_PREFIX).map(({ key, value }) => [
    key.slice(RUNNING_PREFIX.length),
    read(runningRecord, key, value),
  ]);
}

function under(entries: readonly Entry[], prefix: string): readonly Entry[] {
  return entries.filter(({ key }) => key.startsWith(prefix));
}

function isSame(one: Uint8Array, other: Uint8Array | undefined): boolean {
  return other !== undefined && Buffer.compare(one, other) === 0;
}

function read<T>(type: RecordType<T>, key: string, value: Uint8Array): T {
  return okOrFailure("shadow", decodeRecord(type, key, value));
}
