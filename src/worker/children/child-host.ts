// The room of processes of other people's code. child.ts is the port; starter.ts and starter-program.ts start them, gated-start.ts keeps one
// at a gate, launcher.ts and slot-shell.ts keep shells that start commands quicker, pipe-output.ts reads what those write, guardian.ts outlives the worker by a moment,
// group-records.ts is the list on the disk; child-group.ts ends one with all that it started; child-output.ts reads what it writes;
// program-search.ts knows before a start that a program is missing.
//
// Here backends get them. Each is the leader of a session and a process group of its own, and dies with this worker: a guardian kills
// what a worker that was killed leaves behind, and a worker that starts reaps what the one before and its guardian left.
//
// Keeps true: before a child executes anything of its program, the guardian knows its group and a record of it is on the
// disk; both forget it when nothing of the group is left, and not before.
import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { isDoneWithin } from "../../base/clock.ts";
import { describeError } from "../../base/errors.ts";
import { findProcess } from "../../base/process-table.ts";
import { systemReason, unwritable } from "../../base/system-reason.ts";
import type { Logger } from "../../observe/log.ts";
import type { Child, Children, ChildRequest, ChildStart } from "./child.ts";
import { ChildGroup, confine, endConfined, findCgroupBase, membersFile } from "./child-group.ts";
import type { GroupName } from "./child-group.ts";
import { findProgram } from "./program-search.ts";
import { ChildRecords } from "./group-records.ts";
import { startGated } from "./gated-start.ts";
import type { GatedChild } from "./gated-start.ts";
import { Guardian } from "./guardian.ts";
import { Launcher } from "./launcher.ts";
import type { Starter } from "./starter.ts";

export interface ChildHostOptions {
  /** For the records; this worker's own, made when it is not there. */
  readonly directory: string;
  /** Starts its processes; the caller closes it, after the host. */
  readonly starter: Starter;
  readonly clock: Clock;
  readonly log: Logger;
  /** How long a start, or an end, waits for processes that cannot be ended; 10 s unless said. */
  readonly reapLimitMs?: number;
}

const REAP_LIMIT_MS = 10_000;

export class ChildHost implements Children {
  readonly #options: ChildHostOptions;
  readonly #records: ChildRecords;
  readonly #guardian: Guardian;
  /** Below which each child has a cgroup of its own, where that can be; undefined elsewhere. */
  readonly cgroupBase: string | undefined;
  /** Children of which something lives. */
  readonly #living = new Set<Child>();
  /** Files that name who is in the cgroups of children. */
  readonly #members = new WeakMap<Child, string>();
  readonly #launcher: Launcher;
  /** Programs that were found, by all that finding them depends on. */
  readonly #programs = new Map<string, string>();
  #isClosed = false;

  private constructor(options: ChildHostOptions, records: ChildRecords, cgroupBase: string | undefined) {
    this.#options = options;
    this.cgroupBase = cgroupBase;
    this.#records = records;
    this.#guardian = new Guardian({ ...options, cgroupBase });
    const { clock, starter } = options;
    this.#launcher = new Launcher({
      ...{ clock, counts: starter },
      start: (program, request) => this.#start(program, request),
      membersOf: (child) => this.#members.get(child),
    });
  }

  /** Ends what an earlier worker left first. Throws file_unwritable and not_trusted for the directory. */
  static async open(options: ChildHostOptions): Promise<ChildHost> {
    const { directory, clock, log } = options;
    const records = new ChildRecords(directory);
    try {
      const cgroupBase = await findCgroupBase();
      const { ended, stuck, written } = await records.reap(clock, options.reapLimitMs ?? REAP_LIMIT_MS);
      if (cgroupBase !== undefined)
        await Promise.all(written.map((name) => endConfined(cgroupBase, name, clock)));
      if (ended > 0) log.warn("ended processes that an earlier start of this worker left", { groups: ended });
      if (stuck.length > 0) {
        const pids = stuck.map(({ pid }) => pid).join(", ");
        log.error(
          "processes of an earlier start of this worker cannot be ended, and may still execute items",
          { pids },
        );
      }
      return new ChildHost(options, records, cgroupBase);
    } catch (error) {
      throw unwritable(directory, error);
    }
  }

  /** The guardian's; undefined as long as there was no child. */
  get guardianPid(): number | undefined {
    return this.#guardian.pid;
  }

  async spawn(request: ChildRequest): Promise<ChildStart> {
    assert(!this.#isClosed, "a host that is closed starts nothing");
    const found = await this.#find(request);
    if (found.kind === "missing")
      return { kind: "failed", failure: { kind: "unusable", reason: found.reason } };
    const { input, env, variables, byStarter = false } = request;
    if (input !== undefined && !byStarter) {
      const launched = await this.#launcher.launch(found.path, { ...request, input });
      if (launched !== undefined) return launched;
    }
    const start = await this.#start(found.path, { ...request, env: { ...env, ...variables } });
    if (start.kind === "started" && input !== undefined) start.child.stdin.end(input);
    return start;
  }

  async #start(program: string, request: ChildRequest): Promise<ChildStart> {
    const start = await startGated(this.#options.starter, program, request);
    return start.kind === "failed" ? start : this.#admit(start.child, request, program);
  }

  /** Kills all that still lives, and says what cannot be. Idempotent. Nothing is started after it. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const { clock, log, reapLimitMs = REAP_LIMIT_MS } = this.#options;
    await isDoneWithin(clock, reapLimitMs, Promise.all([...this.#living].map((child) => child.kill(0))));
    const pids = [...this.#living].map(({ pid }) => pid).join(", ");
    if (pids !== "")
      log.error("processes of this worker cannot be ended, and may still execute items", { pids });
    this.#guardian.close();
  }

  async #find({ command, cwd, env }: ChildRequest): ReturnType<typeof findProgram> {
    const [program = ""] = command;
    const key = JSON.stringify([program, cwd, env["PATH"]]);
    const known = this.#programs.get(key);
    if (known !== undefined) return { kind: "found", path: known };
    const found = await findProgram(program, cwd, env["PATH"]);
    if (this.#programs.size >= PROGRAMS_MAX) this.#programs.clear();
    if (found.kind === "found") this.#programs.set(key, found.path);
    return found;
  }

  /** The child stands at the gate: it goes through when it is known to all who are to end it. */
  async #admit(gated: GatedChild, request: ChildRequest, path: string): Promise<ChildStart> {
    const { clock } = this.#options;
    const group = new ChildGroup(gated.pid, clock);
    const name = { pid: gated.pid, startedAt: findProcess(gated.pid)?.startedAt ?? "0" };
    void gated.exited.then(() => group.leaderExited());
    const base = this.cgroupBase;
    // Beside its registration: the kernel takes its time to move a process.
    const confining = base === undefined ? Promise.resolve(false) : confine(base, name);
    const child: Child = hosted(gated, group, async () => {
      if (base !== undefined && (await confining)) await endConfined(base, name, clock);
      await this.#forget(child, name);
    });
    this.#living.add(child);
    const [obstacle, isConfined] = await Promise.all([this.#register(name), confining]);
    if (base !== undefined && isConfined) this.#members.set(child, membersFile(base, name));
    // Between the start and this moment the process may have stood still for as long as it likes.
    const isWithheld = request.mayBegin?.() === false;
    if (obstacle === undefined && !this.#isClosed && !isWithheld && (await gated.open()))
      return { kind: "started", child };
    await child.kill(0);
    if (isWithheld) return { kind: "failed", failure: { kind: "withheld", reason: "it may not begin" } };
    if (obstacle !== undefined) return { kind: "failed", failure: { kind: "exhausted", reason: obstacle } };
    if (this.#isClosed) return { kind: "failed", failure: { kind: "exhausted", reason: "the worker ends" } };
    // It was there when it was found.
    this.#programs.clear();
    const again = await this.#find(request);
    const reason = again.kind === "missing" ? again.reason : `the program ${path} cannot be executed`;
    return { kind: "failed", failure: { kind: "unusable", reason } };
  }

  /** Why it cannot be. */
  async #register(name: GroupName): Promise<string | undefined> {
    try {
      await this.#records.add(name);
    } catch (error) {
      return `no record of it can be written: ${systemReason(error)}`;
    }
    return (await this.#guardian.watch(name)) ? undefined : "there is no guardian for it";
  }

  async #forget(child: Child, name: GroupName): Promise<void> {
    this.#living.delete(child);
    this.#guardian.forget(name);
    try {
      await this.#records.remove(name);
    } catch (error) {
      // The next start looks whether it lives, and it does not.
      this.#options.log.warn(`the record of a child stays: ${describeError(error)}`);
    }
  }
}

/** Programs that are remembered; a command whose first word comes from its items has many. */
const PROGRAMS_MAX = 64;

/** The child as backends see it. `onGone` is called once, when nothing of it is left. */
function hosted({ open: _, ...child }: GatedChild, group: ChildGroup, onGone: () => Promise<void>): Child {
  let gone: Promise<void> | undefined;
  const kill = (graceMs: number): Promise<void> => {
    const ended = group.end(graceMs);
    gone ??= ended.then(onGone);
    return gone;
  };
  return { ...child, kill };
}
