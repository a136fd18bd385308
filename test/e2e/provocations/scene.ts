// The circumstances in which a command meets an error of the table, and the words of the error then.
import type { ErrorCode, ErrorParams } from "../../../src/base/errors.ts";
import type { Cluster } from "../../support/cluster.ts";
import type { RolloutProcess } from "../../support/rollout-process.ts";

/** The command that meets the error, and the values that it must name. Met twice: for a person and for a program. */
export interface Scene<Code extends ErrorCode = ErrorCode> {
  readonly args: readonly string[];
  readonly params: ErrorParams<Code>;
  readonly env?: Readonly<Record<string, string>>;
  readonly wrapper?: readonly string[];
  /** Called once the command runs. */
  readonly meanwhile?: (command: RolloutProcess) => Promise<void>;
  readonly after?: () => Promise<unknown>;
  /** The command has more to say than its error: how far it came, and how to go on. */
  readonly tellsMore?: true;
}

/** `by` ends the sentence "provoked by …". */
export type Provocation<Code extends ErrorCode = ErrorCode> = { readonly by: string } & (
  | StagedProvocation<Code>
  | SaidProvocation<Code>
);

/** A coordinator is made to say the row. */
export interface SaidProvocation<Code extends ErrorCode = ErrorCode> {
  readonly says: ErrorParams<Code>;
}

export interface StagedProvocation<Code extends ErrorCode = ErrorCode> {
  /**
   * A coordinator leads already, for all of these one after the other, and no worker is there. A scene leaves both as they are; others may have left items
   * and files.
   */
  readonly isBesideOthers?: true;
  /** A coordinator has led in the cluster's directory and has ended. */
  readonly wasLed?: true;
  readonly stage: (cluster: Cluster) => Promise<Scene<Code>>;
}
