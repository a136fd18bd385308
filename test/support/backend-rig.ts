// A backend at work: in a real executor, with real children, on the real clock.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { seededRandom } from "../../src/base/random.ts";
import { BacklogPace } from "../../src/worker/work/backlog-pace.ts";
import type { Assigned } from "../../src/worker/work/backlog.ts";
import type { Backend } from "../../src/worker/backends/backend.ts";
import type { ChildHost } from "../../src/worker/children/child-host.ts";
import type { Finished } from "../../src/worker/work/execution.ts";
import { Executor } from "../../src/worker/work/executor.ts";
import type { Plugins } from "../../src/worker/backends/plugins.ts";
import { assignedItem } from "./assigned-item.ts";
import type { BackendCase } from "./backend-case.ts";
import { openChildHost } from "./child-host.ts";
import type { OpenedHost } from "./child-host.ts";
import { LIMITS } from "./backend-case.ts";
import { eventually } from "./eventually.ts";
import { fixedPlugins } from "./fixed-plugins.ts";
import type { ItemBehaviour } from "./item-behaviour.ts";
import { RecordingLogger } from "./recording-logger.ts";
import { environmentFor } from "./rollout-process.ts";

const SLOTS = 4;

export class BackendRig {
  readonly backend: Backend;
  readonly children: ChildHost;
  readonly executor: Executor;
  readonly log: RecordingLogger;
  readonly broken: string[];
  readonly finished: Finished[] = [];
  /** The answer when an item is about to begin. After a refusal nothing is started until this is true again. */
  mayBegin = true;
  readonly #plugins: Plugins;
  #items = 0;
  #refusals = 0;

  readonly #opened: OpenedHost;

  private constructor(backend: Backend, opened: OpenedHost, log: RecordingLogger, broken: string[]) {
    this.backend = backend;
    this.#opened = opened;
    this.children = opened.host;
    this.log = log;
    this.broken = broken;
    this.#plugins = fixedPlugins(backend);
    this.executor = new Executor({
      plugins: this.#plugins,
      slots: SLOTS,
      pace: new BacklogPace({ timeMs: 250, slots: SLOTS, least: SLOTS, most: SLOTS }),
      capacity: 2 * SLOTS,
      ...LIMITS,
      env: { ROLLOUT_RUN_ID: "the run" },
      clock: systemClock,
      log,
      mayStart: () => this.mayBegin || this.#refusals === 0,
      mayBegin: () => {
        if (!this.mayBegin) this.#refusals++;
        return this.mayBegin;
      },
      onFinished: (one) => void this.finished.push(one),
      onHandedBack: ([one]) => {
        throw new Error(`item ${one?.itemId[0] ?? ""} was handed back`);
      },
      onSurplus: () => undefined,
      onRoom: () => undefined,
    });
  }

  /** In a directory of the test. */
  static async open({ open }: Pick<BackendCase, "open">, directory: string): Promise<BackendRig> {
    const log = new RecordingLogger();
    const opened = await openChildHost(recordsIn(directory), log);
    const { host: children } = opened;
    const broken: string[] = [];
    const backend = open({
      directory,
      children,
      clock: systemClock,
      random: seededRandom(1),
      log,
      env: environmentFor(),
      onBroken: (reason) => void broken.push(reason),
    });
    return new BackendRig(backend, opened, log, broken);
  }

  /** Gives the item to the executor, which starts it when there is room. */
  give(item: ItemBehaviour | Uint8Array, parts: Partial<Assigned> = {}): Assigned {
    const payload = item instanceof Uint8Array ? item : Buffer.from(JSON.stringify(item));
    const assigned = assignedItem(++this.#items, { payload, ...parts });
    this.executor.take(assigned);
    this.executor.pump();
    return assigned;
  }

  /** The end of its attempt, which is waited for. */
  end({ key }: Assigned): Promise<Finished> {
    const look = (): Finished | undefined => this.finished.find(({ assigned }) => assigned.key === key);
    return eventually("the end of the attempt", look);
  }

  run(item: ItemBehaviour | Uint8Array, parts: Partial<Assigned> = {}): Promise<Finished> {
    return this.end(this.give(item, parts));
  }

  async close(): Promise<void> {
    this.executor.kill();
    await this.#plugins.close();
    await this.#opened.close();
  }
}

/** Where a test's children are recorded. */
export function recordsIn(directory: string): string {
  return join(directory, "records");
}

/** The processes that a hanging item has written down, when it has. */
export function pidsIn(file: string): Promise<number[]> {
  const look = (): number[] | undefined => {
    const text = existsSync(file) ? readFileSync(file, "utf8") : "";
    return text.endsWith("\n") ? text.trim().split(" ").map(Number) : undefined;
  };
  return eventually(`pids in ${file}`, look);
}

/** Whether the process executes: a zombie does not. */
export function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !/^[ZX]$/.test(stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3));
  } catch {
    return false;
  }
}

export function allGone(pids: readonly number[]): Promise<boolean> {
  return eventually(`the end of ${pids.join(", ")}`, () => !pids.some(isRunning));
}
