// One item, as the library gives it: where it stands, and what became of its attempts.
import type { Client } from "@connectrpc/connect";
import { failure, RolloutError } from "../base/errors.ts";
import type { WorkerId } from "../base/ids.ts";
import { LIMITS } from "../config/limits.ts";
import type {
  AttemptRecord,
  GetAttemptLogResponse,
  GetItemResponse,
  Item as ItemWire,
  OperatorService,
} from "../gen/rollout/v1/run_pb.ts";
import { ItemSchema } from "../gen/rollout/v1/run_pb.ts";
import { originOf } from "./origin.ts";
import type { Origin } from "./origin.ts";
import { plainOf, told } from "./operator-message.ts";
import type { Plain } from "./operator-message.ts";
import { resultOf } from "./results.ts";
import type { Result } from "./results.ts";

/** An attempt that has ended. */
export interface EndedAttempt extends Plain<AttemptRecord> {
  readonly worker: WorkerId | undefined;
}

export interface Item extends Omit<Plain<ItemWire>, "error" | "origin"> {
  /** Undefined for an item that was submitted. */
  readonly origin: Origin | undefined;
  readonly itemId: Uint8Array;
  /** How the input itself names it. */
  readonly id: string | undefined;
  readonly payload: Uint8Array;
  /** `fresh`: never given out. `returned`: at its old place, and next to be given out. `delayed`: waits after a failure. */
  readonly state: "fresh" | "returned" | "delayed" | "running" | "done" | "failed" | "unknown";
  readonly worker: WorkerId | undefined;
  readonly assignedAgeMs: number | undefined;
  /** When a delayed item may run: milliseconds since 1970 on the coordinator's clock. */
  readonly dueAtMs: number | undefined;
  /** How many go before it; undefined when they are too many to count. */
  readonly ahead: number | undefined;
  /** The remembered ones, oldest first. */
  readonly attempts: readonly EndedAttempt[];
  readonly result: Result | undefined;
}

export interface AttemptLog extends Plain<GetAttemptLogResponse> {
  /** The attempt's number; 0 when there is no log. */
  readonly attempt: number;
}

/** So much of a name that is too long. */
const SHOWN_CHARACTERS = 64;

/** `name`: 64 digits, the first of them, or the input's own id. Throws the transport's rows, and those of unknown names. */
export async function askForItem(
  calls: Client<typeof OperatorService>,
  name: string,
): Promise<GetItemResponse> {
  // No item is named so, and a coordinator would take it for a message that it does not understand.
  if (name === "" || name.length > LIMITS.itemTextBytes)
    throw failure("item_unknown", { name: name === "" ? '""' : `${name.slice(0, SHOWN_CHARACTERS)}…` });
  return calls.getItem({ name });
}

/** Whether it says that the run has no item of that name. */
export function isUnknownItem(error: unknown): error is RolloutError {
  return error instanceof RolloutError && error.code === "item_unknown";
}

export function itemOf({ item, payload, assignedAgeMs, result }: GetItemResponse): Item {
  const plain = withoutError(plainOf(ItemSchema, told(item)));
  return {
    ...plain,
    itemId: Buffer.from(plain.item, "hex"),
    ...{ payload, assignedAgeMs, origin: originOf(item?.origin) },
    result: result === undefined ? undefined : resultOf(result),
  };
}

/** The library has it with the result. */
function withoutError({
  error: _,
  origin: _wire,
  ...item
}: Plain<ItemWire>): Omit<Item, "itemId" | "payload" | "assignedAgeMs" | "result" | "origin"> {
  return item as ReturnType<typeof withoutError>;
}
