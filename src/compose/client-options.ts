// The words in which a program asks a RolloutClient for something.
import type { WatchOptions } from "../client/events.ts";
import type { ReadOptions } from "../client/results.ts";
import type { NameOf, SubmitOptions } from "../client/submit.ts";

export interface ConnectOptions {
  /** Path of the configuration file; `rollout.toml` in the working directory unless said. */
  readonly config?: string;
  /**
   * Values that count in place of the file's, by the names of flags: `{ "coordinator-addr": "10.0.0.7:50051" }`, of several
   * coordinators with commas or as a list.
   */
  readonly settings?: Readonly<Record<string, string | readonly string[]>>;
}

export interface SubmitItemsOptions extends Pick<SubmitOptions, "onProgress" | "dryRun" | "reopen"> {
  /** Manifest of the plugin that executes the items; without it that of `worker.plugins`, or `mock`. */
  readonly plugin?: string | undefined;
  /** Higher goes first, -100 to 100; 0 unless said. */
  readonly priority?: number;
  /** Say that nothing more will come: the run ends with the last of its items. */
  readonly seal?: boolean;
  /**
   * Items of one key execute one at a time and in order. Where an item has its key: a member's name or a JSON pointer, or a function of
   * the item. A key is a text of 1 to 256 bytes, or an integer.
   */
  readonly key?: NameOf | undefined;
  /** The same for what names the item within its key for ever: the same id is the same item. Goes with `key`. */
  readonly id?: NameOf | undefined;
}

export interface ResultsOptions extends Partial<Omit<ReadOptions, "clock" | "random" | "patienceMs">> {
  /**
   * How long a coordinator that does not answer is waited for. Unless said, for ever with `follow`; without, not at all at first, and
   * later for half a minute.
   */
  readonly patienceMs?: number;
}

export type EventsOptions = Partial<Omit<WatchOptions, "clock" | "random">>;

export interface RetryOptions {
  /** Only failures of this class: `error`, `timeout`, `crash`, `too_large`, `poison` or `cancelled`. */
  readonly failureClass?: string | undefined;
  /** Items by name, as `item` takes them; without any all that failed. */
  readonly items?: readonly string[];
  /** Only count what would be tried again. */
  readonly dryRun?: boolean;
}
