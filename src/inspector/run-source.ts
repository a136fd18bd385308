// The run as the hub asks for it, in the words of the page: one session is one connection with one stream of charts. Implemented by
// src/compose, over the library's client.
import type { ItemAtWork, PageNews, ReleaseNow, RunNumbers, Step, WorkerRow } from "./page-messages.ts";

export interface RunSource {
  /** Rejects with the rows of configuration, certificates and transport. */
  open(): Promise<RunSession>;
}

export interface RunSession {
  /** The run in numbers and, of a look that is `whole`, the others anew; else as they were. Rejects with the transport's rows. */
  look(how: { readonly whole: boolean }): Promise<Look>;
  /** Whole in the first answer, then new; ends when the signal aborts. Throws the transport's rows when the connection breaks. */
  watch(signal: AbortSignal): AsyncIterable<ChartsNews>;
  close(): void;
}

export interface Look {
  readonly status: RunNumbers;
  /** Undefined where they were not asked for. */
  readonly workers: readonly WorkerRow[] | undefined;
  /** The release that is not over, or else the last one; null where there was none, undefined where it was not asked for. */
  readonly release?: ReleaseNow | null | undefined;
}

export interface ChartsNews {
  /** Oldest first. */
  readonly steps: readonly NewStep[];
  /** Steps that are missing before these. */
  readonly dropped: number;
  readonly happenings: readonly Happening[];
  readonly history: Course | undefined;
  readonly atWork: readonly ItemAtWork[] | undefined;
}

export type NewStep = Omit<Step, "number">;
export type Course = Omit<Extract<PageNews, { kind: "history" }>, "kind">;

/** An event of the cluster. */
export interface Happening {
  readonly at_ms: number;
  readonly topic: string;
  readonly fields: Readonly<Record<string, unknown>>;
}
