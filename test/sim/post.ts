// The post of a simulated coordinator that shares its ledger, as `CoordinatorPost` is a real one's: it listens first, stands and leads,
// makes room when it is asked to or is not heard, and stands again, until it is told to stop.
import type { IncarnationId } from "../../src/base/ids.ts";
import type { CoordinatorOptions } from "../../src/coordinator/coordinator-options.ts";
import { Coordinator } from "../../src/coordinator/coordinator.ts";
import { Attendance } from "../../src/coordinator/lead/attendance.ts";
import type { AttendanceOptions, LeaderTerm } from "../../src/coordinator/lead/attendance.ts";
import type { LeaderElector } from "../../src/coordinator/lead/elector.ts";
import { Role } from "../../src/coordinator/lead/role.ts";
import { notLeader, refusedRoutes } from "../../src/coordinator/rpc/not-leading.ts";
import { workersSegment } from "../../src/coordinator/workers/worker-record.ts";
import { claimStore } from "../../src/storage/store-identity.ts";
import type { SimProcess } from "./process.ts";
import { Services } from "./sim-transport.ts";

export interface PostOptions {
  readonly process: SimProcess;
  readonly incarnation: IncarnationId;
  readonly coordinator: Omit<CoordinatorOptions, "elector" | "role">;
  readonly attendance: Pick<
    AttendanceOptions,
    "address" | "timing" | "standing" | "removeAfterMs" | "failureTimeoutMs" | "hears"
  >;
  /** One for each time that it stands. */
  readonly newElector: () => LeaderElector;
  /** From now on it serves these. */
  readonly serve: (services: Services) => void;
  readonly onLead: (coordinator: Coordinator) => void;
}

export class Post {
  readonly #options: PostOptions;
  readonly #over = new AbortController();
  #attendance: Attendance | undefined;
  #coordinator: Coordinator | undefined;
  #leave: PromiseWithResolvers<undefined> | undefined;
  #term: LeaderTerm | undefined;

  constructor(options: PostOptions) {
    this.#options = options;
  }

  /** The leadership that it has now. */
  get coordinator(): Coordinator | undefined {
    return this.#coordinator;
  }

  /** Resolves when it has stopped as it was told to. */
  async hold(): Promise<void> {
    const { coordinator: options, attendance, serve, onLead, incarnation } = this.#options;
    const { runId, store, ownStore, clock, random, log, events, onFatal } = options;
    await claimStore(store, { runId, segments: [workersSegment], clock, random });
    const role = await Role.take({ ownStore, incarnation, clock, random, log, onFatal });
    const own = (this.#attendance = new Attendance({
      ...{ store, incarnation, clock, log, events, role, ...attendance },
      term: () => this.#term,
      onPublished: (epoch) => options.memory?.note({ epoch }),
      rehearse: () => undefined,
    }));
    const refusing = new Services((router) =>
      refusedRoutes(router, () => notLeader(own.leader, own.retryAfterMs)),
    );
    serve(refusing);
    await own.start();
    while (!this.#isStopping) {
      const coordinator = await this.#stand(role, own);
      if (coordinator === undefined) break;
      onLead(coordinator);
      await this.#lead(coordinator, own, refusing);
    }
    await own.stop();
    await role.close();
  }

  /** Until it is to make room, or to stop. */
  async #lead(coordinator: Coordinator, attendance: Attendance, refusing: Services): Promise<void> {
    const { process, serve } = this.#options;
    const leave = (this.#leave = Promise.withResolvers<undefined>());
    const giveUp = (reason: string): void => {
      process.say(`makes room: ${reason}`);
      leave.resolve(undefined);
    };
    serve(new Services(coordinator.routes));
    this.#term = { ...coordinator.term, giveUp };
    attendance.turned();
    await Promise.race([leave.promise, aborted(this.#over.signal)]);
    serve(refusing);
    coordinator.endStreams();
    await (this.#isStopping ? coordinator.stop() : coordinator.makeRoom());
    this.#term = undefined;
    this.#coordinator = undefined;
    attendance.turned();
  }

  get #isStopping(): boolean {
    return this.#over.signal.aborted;
  }

  /** As by SIGTERM. */
  stop(): void {
    this.#over.abort();
  }

  /** As by `rollout coordinator step-down`. */
  stepDown(): void {
    if (this.#attendance?.hasSuccessor === true) this.#leave?.resolve(undefined);
  }

  /** Undefined when it was told to stop before it led. */
  async #stand(role: Role, attendance: Attendance): Promise<Coordinator | undefined> {
    const { coordinator: options, newElector } = this.#options;
    try {
      this.#coordinator = await Coordinator.start({
        ...options,
        role,
        elector: newElector(),
        onLook: (lease) => attendance.see(lease),
        candidacy: (chance) => attendance.candidacy(chance),
        signal: this.#over.signal,
      });
      return this.#coordinator;
    } catch (error) {
      if (this.#isStopping) return undefined;
      throw error;
    }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve());
  });
}
