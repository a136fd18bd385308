// The coordinators of a run, to whoever asks this one: which there are, who leads, and that the one who leads is to make room. It answers
// whether this one leads or not, and refuses all other calls while it does not.
import type { ConnectRouter } from "@connectrpc/connect";
import { failure } from "../base/errors.ts";
import type { RolloutError } from "../base/errors.ts";
import type { IncarnationId, StoreId } from "../base/ids.ts";
import type { Attendance, KnownLeader } from "../coordinator/lead/attendance.ts";
import type { Role } from "../coordinator/lead/role.ts";
import type { Member } from "../coordinator/lead/roster.ts";
import { coordinatorService } from "../coordinator/rpc/coordinator-service.ts";
import { notLeader, refusedRoutes } from "../coordinator/rpc/not-leading.ts";
import { CoordinatorService } from "../gen/rollout/v1/coordinator_pb.ts";
import type { Leadership } from "./leadership.ts";

export interface DeskOptions {
  readonly incarnation: IncarnationId;
  readonly storeId: StoreId;
  readonly role: Role;
  readonly weight: number;
  readonly heartbeatIntervalMs: number;
  /** At which others reach it. */
  readonly address: () => string;
  /** The one that it has now. */
  readonly leadership: () => Leadership | undefined;
  /** Undefined where the store is not shared. */
  readonly attendance: () => Attendance | undefined;
  /** Bytes of messages that it has in memory. */
  readonly intakeBytes: () => number;
}

export class CoordinatorDesk {
  readonly #options: DeskOptions;

  constructor(options: DeskOptions) {
    this.#options = options;
  }

  /** The services of a coordinator that does not lead. */
  readonly routesOfCandidate = (router: ConnectRouter): void => {
    refusedRoutes(router, () => this.refusal());
    this.routes(router);
  };

  readonly routes = (router: ConnectRouter): void => {
    const { incarnation, storeId, attendance } = this.#options;
    const service = coordinatorService({
      ...{ incarnation, storeId },
      members: () => attendance()?.members ?? [this.own],
      epoch: () => this.leading?.epoch ?? this.leader?.epoch ?? undefined,
      stepDown: (epoch) => this.#stepDown(epoch),
    });
    router.service(CoordinatorService, service);
  };

  refusal(): RolloutError {
    const { attendance, heartbeatIntervalMs } = this.#options;
    return notLeader(this.leader, attendance()?.retryAfterMs ?? heartbeatIntervalMs / 4);
  }

  /** This one, as it says of itself. */
  get own(): Member {
    return this.#options.attendance()?.own ?? this.#alone();
  }

  /** Another one that leads, as far as it is known. */
  get leader(): KnownLeader | undefined {
    return this.#options.attendance()?.leader;
  }

  get leading(): Leadership | undefined {
    return this.#options.leadership();
  }

  /** Since the last snapshot that it has published or seen; undefined where there is none. */
  get snapshotAgeMs(): number | undefined {
    const attendance = this.#options.attendance();
    return attendance && (this.leading?.coordinator.snapshotAgeMs ?? attendance.snapshotAgeMs);
  }

  get intakeBytes(): number {
    return this.#options.intakeBytes();
  }

  /** Whether the store answers, to one that follows. */
  get hasStore(): boolean {
    return this.#options.attendance()?.hasStore ?? true;
  }

  async #stepDown(epoch: number): Promise<void> {
    const { leading } = this;
    if (leading === undefined) throw this.refusal();
    // A later leadership than the one that was to end.
    if (epoch < leading.epoch) return;
    if ((await this.#options.attendance()?.awaitSuccessor()) !== true) throw failure("no_successor", {});
    await leading.stepDown();
  }

  /** The one coordinator of a store that is not shared. */
  #alone(): Member {
    const { incarnation, role, weight, address } = this.#options;
    const row = {
      ...{ address: address(), weight, role: role.name, isWilling: true },
      epoch: this.leading?.epoch ?? null,
      electedAtWallMs: this.leading?.term.electedAtWallMs ?? null,
      ...{ snapshotNumber: null, rehearsalMs: null, rehearsedAtWallMs: null, hearsLeader: null },
      heartbeat: 0,
    };
    return { incarnation, row, isPresent: true };
  }
}
