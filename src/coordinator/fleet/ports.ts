// The coordinator as the room of fleets sees it: a turn that takes writes and questions, the run in numbers, and workers that are there or not.
import type { EventPayloads } from "../../observe/events.ts";
import type {
  AllocationName,
  FoundLog,
  Launched,
  LaunchRequest,
  Listing,
  Stopped,
  StopRequest,
} from "../../fleet/provider.ts";
import type { LogFields } from "../../observe/log.ts";
import type { Entry } from "../../storage/store.ts";

export type FleetTopic = Extract<keyof EventPayloads, `fleet_${string}` | `allocation_${string}`>;

/** Asked of the provider of a fleet when the turn is committed, and answered to a later one. */
export type FleetQuestion =
  | ({ readonly verb: "launch"; readonly fleet: string } & Pick<
      LaunchRequest,
      "allocation" | "epoch" | "slots"
    >)
  /** `number` counts the lists of a leadership. */
  | { readonly verb: "list"; readonly fleet: string; readonly number: number }
  | ({ readonly verb: "stop" } & Omit<StopRequest, "run" | "store">)
  | ({ readonly verb: "log" } & Omit<AllocationName, "run" | "store">);

export type FleetAnswer =
  | {
      readonly verb: "launch";
      readonly fleet: string;
      readonly allocation: string;
      readonly answer: Launched;
    }
  | { readonly verb: "list"; readonly fleet: string; readonly number: number; readonly answer: Listing }
  | { readonly verb: "stop"; readonly fleet: string; readonly allocation: string; readonly answer: Stopped }
  | { readonly verb: "log"; readonly fleet: string; readonly allocation: string; readonly answer: FoundLog };

export interface FleetTurn {
  /** Monotonic. */
  readonly nowMs: number;
  readonly wallMs: number;
  /** See `Turn.steadyMs`. */
  readonly steadyMs: number;
  put(entry: Entry): void;
  delete(key: string): void;
  requireSync(): void;
  emit<T extends FleetTopic>(topic: T, payload: EventPayloads[T]): void;
  warn(message: string, fields: LogFields): void;
  stepped(step: {
    readonly chart: "fleet" | "allocation";
    readonly address: string;
    readonly event: string;
    readonly from: string;
    readonly to: string;
  }): void;
  askProvider(question: FleetQuestion): void;
}

export interface FleetWorker {
  readonly id: string;
  readonly slots: number;
  /** `silent`: it was not heard for the failure timeout. `left`: it has said goodbye. */
  readonly presence: "heard" | "silent" | "left";
  /** Since it was heard last. */
  readonly silentMs: number;
  /** It is given work, or would be. */
  readonly isOfUse: boolean;
  /** Its machine may be taken away, or it is cordoned. */
  readonly isPoor: boolean;
  readonly hasItems: boolean;
  /** It has brought a result. */
  readonly hasWorked: boolean;
}

/** The run as far as fleets go by it, and what they do to it. */
export interface FleetRun {
  /** Items that could start now, those that wait at workers included. */
  readonly pending: number;
  readonly executing: number;
  /** Items that were ever submitted, and those that are final. */
  readonly submitted: number;
  readonly ended: number;
  /** Nothing is given out: it is paused, complete or cancelled. */
  readonly isIdle: boolean;
  /** Complete or cancelled. */
  readonly isOver: boolean;
  readonly workers: ReadonlyMap<string, FleetWorker>;
  /** Has a worker leave. */
  drain(worker: string): void;
  pause(reason: string): void;
}
