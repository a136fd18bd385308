// A backend as its contract meets it: how one is made, and what its items can ask for.
import type { Clock } from "../../src/base/clock.ts";
import type { Random } from "../../src/base/random.ts";
import type { Logger } from "../../src/observe/log.ts";
import type { Backend } from "../../src/worker/backends/backend.ts";
import type { Children } from "../../src/worker/children/child.ts";
import type { ItemBehaviour } from "./item-behaviour.ts";

export interface BackendSurroundings {
  /** The test's own. */
  readonly directory: string;
  readonly children: Children;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly env: Readonly<Record<string, string>>;
  readonly onBroken: (reason: string) => void;
}

export interface BackendCase {
  readonly name: string;
  /** Behaviours of items that this backend allows. */
  readonly can: ReadonlySet<ItemBehaviour["do"]>;
  open(surroundings: BackendSurroundings): Backend;
  /** The output of an item that gives `value` back; its JSON unless said. */
  readonly outputOf?: (value: unknown, payload: Uint8Array) => Uint8Array;
  /** The text that an item saved, found in the checkpoint; the checkpoint itself unless said. */
  readonly savedText?: (checkpoint: Uint8Array) => string;
  /** The fate of an output that is no UTF-8: it comes as it is, unless said. */
  readonly garbled?: "kept" | "error";
  /** Whether an item executes in a process that ends with it, or that others are executed in as well. */
  readonly executesIn: "this process" | "children";
}

/** For a backend whose items may do all that there is. */
export const EVERYTHING: BackendCase["can"] = new Set([
  ...(["list", "echo", "fail", "crash", "hang", "big", "garble", "complain", "save"] as const),
  ...(["meet", "slot", "learn"] as const),
]);

/** The contract's limit of an output, in bytes. */
export const OUTPUT_LIMIT = 64 * 1_024;
export const STATE_LIMIT = 2 * 1_024;
export const LIMITS = {
  maxOutputBytes: OUTPUT_LIMIT,
  maxCheckpointBytes: 4 * 1_024,
  maxStateBytes: STATE_LIMIT,
};
/** Short, for the tests: nothing of them needs more when it ends as it should. */
export const KILL_GRACE_MS = 300;
