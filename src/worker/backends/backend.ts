// The room of what executes items. Here the port: a backend may be a sleep, a process or a server, and the worker knows only this
// of it, and key-asks.ts, what a success may ask for. plugins.ts holds the backends that a worker has, versions.ts those of one plugin. Beside them, what several backends share: shortage.ts (waits for room on
// the machine), false-starts.ts (children that end before they are ready), trouble-words.ts (texts for beats). A folder for each
// kind: mock, command, process, http, and module, machine and actor, which run a user's code by way of code.
//
// Keeps true: how an attempt ended is a value; a backend that throws has a bug, which is charged to the item it met.
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../observe/log.ts";
import type { Children } from "../children/child.ts";
import type { Ask, KeyEnd, KeyOrigin } from "./key-asks.ts";

/** One try to execute one item, as a backend sees it. */
export interface ItemAttempt {
  /** SHA-256. */
  readonly itemId: Uint8Array;
  /** Counted from 1. */
  readonly attempt: number;
  /** Opaque. Not to be changed. */
  readonly payload: Uint8Array;
  /** The checkpoint of the last `report` of an earlier attempt; empty when there is none. */
  readonly checkpoint: Uint8Array;
  /** Nothing else may execute beside it: what dies now is its own doing. The worker sees to it. */
  readonly alone: boolean;
  /** Undefined for an item without a key. */
  readonly keyed?: KeyOfItem | undefined;
  /**
   * To be asked at the moment at which the item begins: before its process is let go, before it is sent to the server or process
   * that has been waited for. False: it must not begin, because another worker may have it by now; the promise settles with
   * `preempted` then, and it is as if this attempt had never been started. An attempt without it may begin at any time.
   */
  readonly mayBegin?: () => boolean;
  /**
   * For a process that executes the item: `ROLLOUT_RUN_ID`, `ROLLOUT_ITEM_ID`, `ROLLOUT_ATTEMPT` and the like. `ROLLOUT_SLOT` is a
   * number from 0 to one less than the worker's slots, which nothing else has that executes at this worker.
   */
  readonly env: Readonly<Record<string, string>>;
}

export interface KeyOfItem {
  readonly key: string;
  /** As the last item of the key that succeeded left it; undefined when the key has none. Not to be changed. */
  readonly state?: Uint8Array | undefined;
  /** Undefined for an item that was submitted. */
  readonly origin?: KeyOrigin | undefined;
}

/** The state of a key from now on. */
export type StateChange = Uint8Array | "removed";

export type Outcome =
  /** `state`: for an item with a key. Without it the key's state stays as it is. `asks` and `end` go together with one. */
  | {
      readonly kind: "success";
      readonly output: Uint8Array;
      readonly state?: StateChange;
      readonly asks?: readonly Ask[];
      readonly end?: KeyEnd;
    }
  /**
   * The item said no. `response`: the server's own answer, for programs: an object of JSON with `status_code`, `request_id` and
   * `body`, of at most `LIMITS.responseBytes`. `isPermanent`: the same would come of each further attempt, wherever it is made.
   * `sparesKey`: should the item fail by it, its key goes on all the same, for nothing behind it stands on the item.
   */
  | {
      readonly kind: "error";
      readonly message: string;
      readonly response?: Uint8Array;
      readonly isPermanent?: boolean;
      readonly sparesKey?: boolean;
    }
  /** It took longer than it may, which the message says: "no byte for 30s". */
  | { readonly kind: "timeout"; readonly message: string }
  /** The process or server died while it executed this item alone. */
  | { readonly kind: "crash"; readonly message: string }
  /** The process or server died while it executed others too: none is charged, each runs again on its own. */
  | { readonly kind: "crash_shared"; readonly message: string }
  /** Output over the limit. The worker says it of what a backend returns; a backend may say it before it has read it all. */
  | { readonly kind: "too_large"; readonly message?: string }
  /** Ended because the signal asked for it, or because what executed it went away through no fault of the item. */
  | { readonly kind: "preempted"; readonly checkpoint?: Uint8Array };

/** News of an attempt that goes on. */
export type ItemReport =
  /** Replaces the one before; given to the next attempt unless this one succeeds. Not changed afterwards. */
  | { readonly kind: "checkpoint"; readonly checkpoint: Uint8Array }
  /** More of what the attempt wrote to its standard error. The end of it is kept. Not changed afterwards. */
  | { readonly kind: "log"; readonly chunk: Uint8Array }
  /**
   * It waits for what executes it, a model that loads: none of the time counts that it may take. It counts from the next
   * `executing`, and from the start when there is no `waiting` at all.
   */
  | { readonly kind: "waiting" }
  | { readonly kind: "executing" };

/** The reason of a signal that leaves no time for a grace: what runs is killed, because it may be running elsewhere soon. */
export const AT_ONCE = Symbol("at once");

/** The options that backends with children share. */
export interface ChildBackendOptions {
  readonly maxOutputBytes: number;
  readonly maxCheckpointBytes: number;
  readonly maxStateBytes: number;
  /** How long there may be no room for any process or file of an attempt; 2 min unless said. */
  readonly startTimeoutMs?: number;
  readonly children: Children;
  readonly clock: Clock;
  readonly log: Logger;
  /** It executes nothing any more, whatever the item. At most once. */
  readonly onBroken: (reason: string) => void;
}

/** Something that learns by the items that it executes, a process for example, and can save what it has learned: its TrainState. */
export interface Learner {
  /** Rejects when it was not saved. `signal` aborts when there is no time left: nobody waits for it any more. */
  save(timeLeftMs: number, signal: AbortSignal): Promise<void>;
}

export interface Backend {
  /**
   * Executes the item and resolves with how that ended. When `signal` aborts, the attempt is not wanted any more or its
   * time is over: the promise settles soon after, best with `preempted` and a checkpoint, and nothing of the attempt runs on;
   * for the reason `AT_ONCE` without a grace.
   * `report` may be called until then. As many calls at once as the worker has slots.
   */
  execute(attempt: ItemAttempt, signal: AbortSignal, report: (report: ItemReport) => void): Promise<Outcome>;
  /**
   * The trouble that keeps it from executing at this moment though nobody is to blame for it yet, in words for a person and with how
   * long it has lasted: a model that loads, a server that is not there. Undefined when there is none. Asked for each
   * beat: cheap, without secrets. One that has no such trouble has no such method.
   */
  trouble?(): string | undefined;
  /**
   * All that has executed an item since it started and can save what it has learned. Asked when nothing executes. One that keeps
   * nothing between items has no such method.
   */
  learners?(): readonly Learner[];
  /**
   * Ends all that it keeps between items (children, servers, threads), and what still executes: its promise may settle as it
   * likes. Resolves when nothing of it is left. Called once, and nothing is executed after it.
   */
  close(): Promise<void>;
}
