// The processes of a local run: a coordinator and workers, each started again when it dies, and ended in the right order. Keeps
// true: workers always know where the coordinator is; none of them outlives the process that this is in.
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { failure, RolloutError } from "../../base/errors.ts";
import type { WorkerId } from "../../base/ids.ts";
import { systemReason } from "../../base/system-reason.ts";
import type { Topic } from "../../observe/events.ts";
import { KeptProcess, Member } from "./kept-process.ts";
import type { GivenUp, MemberEvent, Program } from "./kept-process.ts";
import type { RunDirectory } from "./run-directory.ts";

export interface SupervisorOptions {
  readonly directory: Pick<RunDirectory, "configFile" | "logFile">;
  readonly program: Program;
  readonly coordinatorWords: readonly string[];
  readonly workerWords: readonly string[];
  readonly clock: Clock;
  /** A sentence for a person. */
  readonly say: (sentence: string) => void;
  /** The coordinator leads at this address: at first, and whenever it is another. */
  readonly onAddress: (address: string) => Promise<void>;
}

/** Where somebody else listens at the port that was meant. */
const ANY_PORT = "127.0.0.1:0";
const PLUGIN_LOADED = "plugin_loaded" satisfies Topic;
/** The error of the second of two that wanted the same port. */
const PORT_TAKEN = "listen_failed";
/** A coordinator that was asked to stop waits 5 s for followers, then 5 s for calls in flight, and then closes its databases. */
const COORDINATOR_GRACE_MS = 15_000;
/** A drain has a deadline of its own, and this is beyond it. */
const WORKER_GRACE_MS = 30_000;

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #givenUp = Promise.withResolvers<GivenUp>();
  readonly #leads = Promise.withResolvers<undefined>();
  #coordinator: KeptProcess | undefined;
  #workers: KeptProcess[] = [];
  #workersLoaded: Promise<undefined>[] = [];
  /** Where the coordinator is, or is to be. */
  #address = ANY_PORT;
  #hasLed = false;
  /** Somebody else listens where the coordinator did. */
  #isPortTaken = false;
  /** No worker is started any more. */
  #isLeaving = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
  }

  /** Settles when a process cannot be kept alive. */
  get givenUp(): Promise<GivenUp> {
    return this.#givenUp.promise;
  }

  /**
   * At this address, or where that is taken at another port. Resolves when a coordinator leads for the first time; never when none ever
   * does.
   */
  async startCoordinator(address: string): Promise<void> {
    this.#address = address;
    const { directory, program, coordinatorWords } = this.#options;
    const logFile = await directory.logFile("coordinator");
    // It may have been told to leave before anything was there to be stopped.
    if (this.#isLeaving) throw failure("interrupted", {});
    this.#coordinator = this.#keep("the coordinator", logFile, () => {
      const listenAddr = this.#isPortTaken ? ANY_PORT : this.#address;
      const words = [
        "coordinator",
        "run",
        ...this.#common(),
        "--listen-addr",
        listenAddr,
        ...coordinatorWords,
      ];
      return new Member({ program, words, logFile, onEvent: (event) => this.#onCoordinatorEvent(event) });
    });
    this.#coordinator.start();
    await this.#leads.promise;
  }

  /** To be called when a coordinator has led, or its address is known. `from` others have the names before. */
  async startWorkers(ids: readonly WorkerId[], from = 0): Promise<void> {
    const { directory, program, workerWords } = this.#options;
    for (const [at, id] of ids.entries()) {
      const name = `worker-${from + at + 1}`;
      const logFile = await directory.logFile(name);
      if (this.#isLeaving) return;
      const loaded = Promise.withResolvers<undefined>();
      this.#workersLoaded.push(loaded.promise);
      const worker = this.#keep(name.replace("-", " "), logFile, () => {
        const where = ["--worker-id", id, "--coordinator-addr", this.#address];
        const words = ["worker", "run", ...this.#common(), ...where, ...workerWords];
        // The coordinator, to which the workers report, outlives them, even when all of them are left alone.
        const keepsOpen = this.#coordinator?.member?.input;
        return new Member({
          program,
          words,
          logFile,
          keepsOpen,
          onEvent: ({ topic }) => void (topic === PLUGIN_LOADED && loaded.resolve(undefined)),
        });
      });
      this.#workers.push(worker);
      worker.start();
    }
  }

  /** The coordinator is somebody else's, and listens there from now on. */
  moveTo(address: string): void {
    this.#address = address;
    for (const worker of this.#workers) worker.restart();
  }

  /** Resolves when each of the workers has said once that it can execute items; never when one cannot. */
  async untilWorkersLoaded(): Promise<void> {
    await Promise.all(this.#workersLoaded);
  }

  /** They hand back what they have not started and finish what they can. Resolves when all have gone. Idempotent. */
  async stopWorkers(): Promise<void> {
    this.#isLeaving = true;
    await Promise.all(this.#workers.map((worker) => this.#stop(worker, WORKER_GRACE_MS)));
  }

  /** Call it when the workers have gone. Idempotent. */
  async stopCoordinator(): Promise<void> {
    if (this.#coordinator !== undefined) await this.#stop(this.#coordinator, COORDINATOR_GRACE_MS);
  }

  /** All of them, at once. */
  kill(): void {
    this.#isLeaving = true;
    for (const process of [...this.#workers, this.#coordinator]) process?.kill();
  }

  #common(): string[] {
    return ["--config", this.#options.directory.configFile, "--stop-at-end-of-input"];
  }

  #keep(who: string, logFile: string, launch: () => Member): KeptProcess {
    const { clock, say } = this.#options;
    return new KeptProcess({
      ...{ who, logFile, launch, clock, say },
      onGivenUp: this.#givenUp.resolve,
      onDied: ({ error }) => {
        // Somebody has taken the port meanwhile: any other will do, and the workers are told.
        if (error?.code === PORT_TAKEN) this.#isPortTaken = true;
      },
    });
  }

  async #stop(process: KeptProcess, graceMs: number): Promise<void> {
    const gone = new AbortController();
    void sleep(this.#options.clock, graceMs, gone.signal).then(() => {
      if (!gone.signal.aborted) process.kill();
    });
    await process.stop();
    gone.abort();
  }

  #onCoordinatorEvent({ topic, address }: MemberEvent): void {
    if (topic !== "coordinator_leading" || typeof address !== "string") return;
    const isFirst = !this.#hasLed;
    const isNew = isFirst || address !== this.#address;
    [this.#address, this.#isPortTaken, this.#hasLed] = [address, false, true];
    const ready = isNew ? this.#options.onAddress(address) : Promise.resolve();
    void ready.then(
      () => {
        if (isNew) for (const worker of this.#workers) worker.restart();
        this.#leads.resolve(undefined);
      },
      (error: unknown) => (isFirst ? this.#leads.reject(error) : this.#loseSight(error)),
    );
  }

  /** It has moved, and where to cannot be written down: nobody can speak to it any more. */
  #loseSight(error: unknown): void {
    const { configFile: file } = this.#options.directory;
    const row =
      error instanceof RolloutError
        ? error
        : failure("file_unwritable", { file, reason: systemReason(error) });
    this.#givenUp.resolve({ who: "the coordinator", error: row, exit: row.row.exit });
  }
}
