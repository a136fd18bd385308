// One leadership of a coordinator process, from when calls are answered to when the lease is free: what may end it, and who waits for that.
import type { Epoch } from "../base/ids.ts";
import type { Coordinator } from "../coordinator/coordinator.ts";
import type { LeaderTerm } from "../coordinator/lead/attendance.ts";
import type { Logger } from "../observe/log.ts";

export class Leadership {
  readonly coordinator: Coordinator;
  /** As its part among the others has it. */
  readonly term: LeaderTerm;
  readonly #log: Logger;
  readonly #asked = Promise.withResolvers<"makeRoom">();
  readonly #left = Promise.withResolvers<undefined>();

  constructor(coordinator: Coordinator, log: Logger) {
    this.coordinator = coordinator;
    this.#log = log;
    // Each heartbeat says it again until room is made.
    const unheard = Promise.withResolvers<string>();
    void unheard.promise.then((reason) => {
      log.warn("this coordinator makes room for another", { reason });
      this.#asked.resolve("makeRoom");
    });
    const giveUp = unheard.resolve;
    this.term = { ...coordinator.term, giveUp };
    // Nobody may have asked.
    this.#left.promise.catch(() => undefined);
  }

  get epoch(): Epoch {
    return this.coordinator.epoch;
  }

  /** Resolves when somebody wants it to end. */
  get asked(): Promise<"makeRoom"> {
    return this.#asked.promise;
  }

  /** Resolves when the lease is free. Rejects with why the process has ended instead. */
  stepDown(): Promise<void> {
    this.#asked.resolve("makeRoom");
    return this.#left.promise;
  }

  /** The process goes on, as one that follows. Throws what the stores throw. */
  async makeRoom(): Promise<void> {
    try {
      this.coordinator.endStreams();
      await this.coordinator.makeRoom();
    } catch (error) {
      this.neverLeft(error);
      throw error;
    }
    this.#log.info("the coordinator has made room for another", { epoch: this.epoch });
    this.#left.resolve(undefined);
  }

  /** Tells those who have asked it to make room that the process ends instead. */
  neverLeft(reason: unknown): void {
    this.#left.reject(reason);
  }
}
