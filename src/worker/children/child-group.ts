// All that a child has started and that has not left for a session of its own: ended together.
//
// Keeps true: once nothing of it is left, its number is never signalled again, which may be another's by then.
import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { errnoOf } from "../../base/errors.ts";
import { runningProcesses } from "../../base/process-table.ts";
import type { KernelProcess } from "../../base/process-table.ts";

/** How often it is looked whether something is left: soon at first, for most end at once. */
const LOOK_FIRST_MS = 1;
const LOOK_MAX_MS = 50;

export class ChildGroup {
  /** The number of the leader, of the group and of the session. */
  readonly pid: number;
  readonly #clock: Clock;
  #isGone = false;
  #killAtMs = Infinity;
  #ending: Promise<void> | undefined;

  constructor(pid: number, clock: Clock) {
    // A signal to the group 1 would be one to every process.
    assert(pid > 1, "a child is neither the system's first process nor all of them");
    this.pid = pid;
    this.#clock = clock;
  }

  /** The leader has been waited for: from now on the number lives only as long as others of the group do. */
  leaderExited(): void {
    if (!this.#accepts(0)) this.#isGone = true;
  }

  /**
   * SIGKILL at once. False when something of it is left after `limitMs`: another user's, one that waits for a disk, one that is in
   * another PID namespace. It is not signalled any more then.
   */
  async endWithin(limitMs: number): Promise<boolean> {
    const waited = new AbortController();
    const ended = this.end(0).then(() => true);
    const late = sleep(this.#clock, limitMs, waited.signal).then(() => false);
    const isEnded = await Promise.race([ended, late]);
    waited.abort();
    if (!isEnded) this.#isGone = true;
    return isEnded;
  }

  /** SIGTERM, and SIGKILL after `graceMs` unless an earlier call said sooner. Resolves when nothing is left. */
  end(graceMs: number): Promise<void> {
    this.#killAtMs = Math.min(this.#killAtMs, this.#clock.monotonicMs() + graceMs);
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    if (this.#isGone) return;
    if (this.#killAtMs > this.#clock.monotonicMs()) this.#accepts("SIGTERM");
    for (let waitMs = LOOK_FIRST_MS; this.#accepts(0); waitMs = Math.min(2 * waitMs, LOOK_MAX_MS)) {
      // Again each time: something of it may have forked at the very moment.
      if (this.#killAtMs <= this.#clock.monotonicMs()) this.#accepts("SIGKILL");
      // Processes that have ended and that nobody waits for accept signals for ever.
      if (waitMs === LOOK_MAX_MS && (await this.#members()).length === 0) break;
      await sleep(this.#clock, waitMs);
    }
    await this.#sweep();
    this.#isGone = true;
  }

  /** Kills processes of the session that have a group of their own, as a shell makes one for each of its jobs. */
  async #sweep(): Promise<void> {
    for (let waitMs = LOOK_FIRST_MS; ; waitMs = Math.min(2 * waitMs, LOOK_MAX_MS)) {
      const members = await this.#members();
      if (members.length === 0 || this.#isGone) return;
      for (const { pid } of members) kill(pid, "SIGKILL");
      await sleep(this.#clock, waitMs);
    }
  }

  async #members(): Promise<KernelProcess[]> {
    const all = await runningProcesses(this.#clock);
    return all.filter(({ group, session }) => group === this.pid || session === this.pid);
  }

  /** False when there is nobody to take it. */
  #accepts(signal: NodeJS.Signals | 0): boolean {
    return !this.#isGone && kill(-this.pid, signal);
  }
}

/** False when there is no such process. One of another user's is there and stays. */
function kill(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (errnoOf(error) === "EPERM") return true;
    if (errnoOf(error) === "ESRCH") return false;
    throw error;
  }
}
