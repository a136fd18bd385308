// Releases of a simulated run, seen from outside: batches by the shadow of releases, and beside them what leaves and what starts. A stage is
// promoted once, and said to be once; no verdict acts that nobody has asked the store about; no attempt of a candidate that was
// stopped starts; who executes an item is who its assignment names, and its result says so.
import type { RunningRecord } from "../../src/coordinator/ledger/records.ts";
import { RELEASES_KEY, RELEASES_PREFIX, RUNNING_PREFIX } from "../../src/storage/keys.ts";
import type { Batch, Entry } from "../../src/storage/store.ts";
import type { Release } from "../../src/client/releases.ts";
import type { Execution } from "./journal.ts";
import type { SimProcess } from "./process.ts";
import { STABLE_VERSION } from "./release-settings.ts";
import { ShadowReleases } from "./shadow-releases.ts";
import { short } from "./sim-backend.ts";
import { Violation } from "./world.ts";

/**
 * So long after a release was stopped nothing of its candidate starts any more: by then every worker has heard of it, or is fenced, by a
 * slow clock, behind frames that took seconds.
 */
const STOPPED_MS = 12_000;
/** States in which nothing of the candidate may start. */
const STOPPED: ReadonlySet<string> = new Set(["Held", "RolledBack", "Aborted", "Ended"]);

export class ReleaseWitness {
  #shadow = new ShadowReleases();
  /** Stages that were said to be promoted, and releases that were said to have ended, by their acts. */
  readonly #said = new Set<string>();
  /** Answers of the store that a process leads, of which no verdict has made use. */
  readonly #confirmed = new WeakMap<SimProcess, number>();
  /** By release: since when it has been stopped. */
  readonly #stoppedAtMs = new Map<string, number>();
  #trials = 0;

  /** The release that began last, in the state that its row says; undefined where there is none. */
  get latest(): { readonly id: string; readonly state: string } | undefined {
    return this.#shadow.latest;
  }

  /** Attempts of candidates that have started. */
  get trials(): number {
    return this.#trials;
  }

  /** A batch of a leader was carried out. */
  committed(
    process: SimProcess,
    batch: Batch,
    { epoch, nowMs }: { readonly epoch: number; readonly nowMs: number },
  ): void {
    const verdicts = this.#shadow.take(batch, epoch);
    const left = (this.#confirmed.get(process) ?? 0) - verdicts;
    if (verdicts > 0 && left < 0)
      throw new Violation(`R3: ${process.name} acts by a verdict, and has not asked whether it leads`);
    if (verdicts > 0) this.#confirmed.set(process, left);
    this.#noteStopped(nowMs);
  }

  /** The store has said to the process that it leads. */
  confirmed(process: SimProcess): void {
    this.#confirmed.set(process, (this.#confirmed.get(process) ?? 0) + 1);
  }

  /** These rows are what is left; `behind` them are batches that may still be lost. */
  begunAnew(entries: readonly Entry[], behind: readonly Batch[], epoch: number, nowMs: number): void {
    this.#shadow = new ShadowReleases();
    this.#shadow.load(
      entries.filter(({ key }) =>
        [RELEASES_KEY, RELEASES_PREFIX, RUNNING_PREFIX].some((one) => key.startsWith(one)),
      ),
    );
    for (const batch of behind) this.#shadow.take(batch, epoch);
    this.#noteStopped(nowMs);
  }

  /** An older copy took the store's place: what was said of what it lacks may be said again. */
  forget(): void {
    this.#said.clear();
  }

  /** Each act that was said is there. */
  checkPromises(): void {
    for (const name of this.#said) {
      const [release = "", what = ""] = name.split(" ");
      const [found, said] = /^\d+$/.test(what)
        ? [this.#shadow.phaseOf(release, Number(what)), "Promoted"]
        : [this.#shadow.stateOf(release), what];
      if (found !== said) throw new Violation(`R6: ${release} was said to be ${what}, and is ${found}`);
    }
  }

  /** An event of a coordinator leaves. */
  event(topic: string, payload: { readonly release?: string; readonly stage?: number }): void {
    const act = topic === "stage_promoted" ? String(payload.stage) : ENDS.get(topic);
    if (act === undefined || payload.release === undefined) return;
    const name = `${payload.release} ${act}`;
    if (this.#said.has(name)) throw new Violation(`R6: ${name} is said twice`);
    this.#said.add(name);
    this.checkPromises();
  }

  /** An attempt starts that is its worker's, by `running`. */
  started(
    { item, attempt, version }: Execution,
    { trial, version: named }: RunningRecord,
    nowMs: number,
  ): void {
    const expected = named === "" ? STABLE_VERSION : named;
    if (version !== expected)
      throw new Violation(
        `V1: ${short(item)}#${attempt} is for version ${expected}, and ${version} starts it`,
      );
    if (trial === "") return;
    this.#trials++;
    const stoppedAtMs = this.#stoppedAtMs.get(trial) ?? Infinity;
    if (nowMs - stoppedAtMs > STOPPED_MS)
      throw new Violation(`R: ${short(item)}#${attempt} of the candidate starts, and ${trial} was stopped`);
  }

  /** At the end; `seen` by an operator. */
  checkEnd(seen: Release | undefined): void {
    this.checkPromises();
    const { latest } = this;
    if (latest === undefined && seen === undefined) return;
    const said = latest?.state.replace(/(?<=[a-z])[A-Z]/, (letter) => `_${letter}`).toLowerCase();
    if (seen?.release !== latest?.id || seen?.state !== said)
      throw new Violation(
        `R: an operator sees ${seen?.release} ${seen?.state}, and it is ${latest?.id} ${said}`,
      );
    if (said === "rolling" || said === "held")
      throw new Violation(`R: the run is over, and its release ${said}`);
  }

  #noteStopped(nowMs: number): void {
    const { latest } = this;
    if (latest === undefined) return;
    if (!STOPPED.has(latest.state)) this.#stoppedAtMs.delete(latest.id);
    else if (!this.#stoppedAtMs.has(latest.id)) this.#stoppedAtMs.set(latest.id, nowMs);
  }
}

const ENDS: ReadonlyMap<string, string> = new Map([
  ["release_completed", "Completed"],
  ["release_rolled_back", "RolledBack"],
  ["release_aborted", "Aborted"],
  ["release_ended", "Ended"],
]);
