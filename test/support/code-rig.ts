// The backends that execute a user's JavaScript, with real processes, for tests: sources written into a directory, attempts
// executed, and what they reported.
import { writeFile } from "node:fs/promises";
import type { Clock } from "../../src/base/clock.ts";
import { systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import type { KeyOfItem, Outcome } from "../../src/worker/backends/backend.ts";
import type { ChildHost } from "../../src/worker/children/child-host.ts";
import type { CodeBackend } from "../../src/worker/backends/code/code-backend.ts";
import { actorBackend, machineBackend, moduleBackend } from "../../src/worker/backends/code/code-backend.ts";
import { openChildHost } from "./child-host.ts";
import { useClosers } from "./closers.ts";
import { RecordingLogger } from "./recording-logger.ts";
import { environmentFor } from "./rollout-process.ts";
import { itemId } from "./scripted-coordinator.ts";
import { useTemporaryDirectory } from "./temporary-directory.ts";
import type { TemporaryDirectory } from "./temporary-directory.ts";

export interface Executed {
  readonly outcome: Outcome;
  /** The output of a success as text; undefined otherwise. */
  readonly output: string | undefined;
  readonly log: string;
  readonly checkpoints: readonly Uint8Array[];
}

export interface ExecuteOptions {
  readonly number?: number;
  readonly attempt?: number;
  readonly checkpoint?: Uint8Array;
  readonly signal?: AbortSignal;
  readonly env?: Readonly<Record<string, string>>;
  readonly keyed?: KeyOfItem;
  readonly onLog?: (soFar: string) => void;
  readonly onCheckpoint?: (checkpoint: Uint8Array) => void;
}

type Knobs = Partial<
  Record<"memoryLimitBytes" | "loadTimeoutMs" | "abortGraceMs" | "checkpointIntervalMs", number>
> & {
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly export?: string;
  readonly clock?: Clock;
};

export class CodeRig {
  readonly directory: TemporaryDirectory;
  /** Reasons that backends gave why they cannot execute. */
  readonly broken: string[] = [];
  readonly #onClose: (close: () => unknown) => void;
  #children: ChildHost | undefined;

  constructor(directory: TemporaryDirectory, onClose: (close: () => unknown) => void) {
    this.directory = directory;
    this.#onClose = onClose;
  }

  /** A backend for the function that this source exports. */
  async module(source: string, knobs: Knobs = {}, file = "module.ts"): Promise<CodeBackend> {
    return this.moduleAt(await this.#write(file, source), knobs);
  }

  /** The same for a file that is there. */
  async moduleAt(file: string, { parameters = {}, ...knobs }: Knobs = {}): Promise<CodeBackend> {
    const options = { ...(await this.#options(knobs)), module: file, parameters };
    return this.#closeLater(moduleBackend(options));
  }

  /** A backend for the machine that this source exports. */
  async machine(source: string, knobs: Knobs = {}, file = "machine.ts"): Promise<CodeBackend> {
    return this.machineAt(await this.#write(file, source), knobs);
  }

  async machineAt(file: string, { checkpointIntervalMs = 0, ...knobs }: Knobs = {}): Promise<CodeBackend> {
    const options = { ...(await this.#options(knobs)), module: file, checkpointIntervalMs };
    return this.#closeLater(machineBackend(options));
  }

  /** A backend for the actors that this source exports under the names of `types`. */
  async actor(source: string, types: readonly string[], { stateVersion = 1 } = {}): Promise<CodeBackend> {
    const module = await this.#write(`actors-${stateVersion}.ts`, source);
    return this.#closeLater(actorBackend({ ...(await this.#options({})), module, types, stateVersion }));
  }

  async #write(name: string, source: string): Promise<string> {
    const file = this.directory.file(name);
    await writeFile(file, source);
    return file;
  }

  #closeLater(backend: CodeBackend): CodeBackend {
    this.#onClose(() => backend.close());
    return backend;
  }

  async #options({ memoryLimitBytes, loadTimeoutMs = 20_000, abortGraceMs = 100, ...knobs }: Knobs) {
    const { clock = systemClock } = knobs;
    this.#children ??= await this.#openChildren();
    return {
      export: knobs.export ?? "default",
      workingDirectory: this.directory.path,
      env: environmentFor(),
      ...{ memoryLimitBytes, loadTimeoutMs, abortGraceMs },
      maxOutputBytes: 64 * 1_024,
      maxCheckpointBytes: 32 * 1_024,
      maxStateBytes: 1_000,
      children: this.#children,
      clock,
      random: systemRandom,
      log: new RecordingLogger(),
      onBroken: (reason: string) => void this.broken.push(reason),
    };
  }

  async #openChildren(): Promise<ChildHost> {
    const directory = this.directory.file("children");
    const opened = await openChildHost(directory, new RecordingLogger());
    this.#onClose(() => opened.close());
    return opened.host;
  }
}

/** To be called in a `describe`. */
export function useCodeRig(): () => CodeRig {
  const onClose = useClosers();
  const directory = useTemporaryDirectory();
  let rig: CodeRig | undefined;
  beforeEach(() => {
    rig = new CodeRig(directory, onClose);
  });
  return () => {
    if (rig === undefined) throw new Error("only within a test");
    return rig;
  };
}

/** One attempt, to its end. */
export async function executeText(
  backend: CodeBackend,
  payload: string,
  options: ExecuteOptions = {},
): Promise<Executed> {
  const { number = 1, attempt = 1, signal = new AbortController().signal, env = {} } = options;
  const checkpoints: Uint8Array[] = [];
  let log = "";
  const outcome = await backend.execute(
    {
      itemId: itemId(number),
      ...{ attempt, env, keyed: options.keyed },
      payload: Buffer.from(payload),
      checkpoint: options.checkpoint ?? new Uint8Array(0),
      alone: false,
    },
    signal,
    (report) => {
      if (report.kind === "log") {
        log += Buffer.from(report.chunk).toString();
        options.onLog?.(log);
      }
      if (report.kind !== "checkpoint") return;
      checkpoints.push(report.checkpoint);
      options.onCheckpoint?.(report.checkpoint);
    },
  );
  const output = outcome.kind === "success" ? Buffer.from(outcome.output).toString() : undefined;
  return { outcome, output, log, checkpoints };
}
