// The rows of a run that goes on, taken from its leader into a directory of this machine. One that was cut off is led by nobody, as a copy is.
import type { Client } from "@connectrpc/connect";
import type { Clock } from "../base/clock.ts";
import { failure } from "../base/errors.ts";
import type { OperatorService } from "../gen/rollout/v1/run_pb.ts";
import type { Logger } from "../observe/log.ts";
import { openLevelStore } from "../storage/level/level-store.ts";
import { StoreCopy } from "./copy-store.ts";
import type { Copied } from "./copy-store.ts";

export interface Backup {
  /** The leader's. */
  readonly calls: Client<typeof OperatorService>;
  /** A database of LevelDB is made there. */
  readonly directory: string;
  /** How messages name the coordinator. */
  readonly address: string;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Logger;
}

const NO_VALUE = new Uint8Array();

/** Throws store_… rows, those of the transport, and `overloaded` while another backup is made. */
export async function backUpRun(backup: Backup): Promise<Copied> {
  const { calls, directory: path, address, signal, clock, log } = backup;
  const target = await openLevelStore({ path, holderName: "rollout store backup", clock, log });
  try {
    const copy = await StoreCopy.begin(target);
    let all: number | undefined;
    for await (const { keys, values, rows } of calls.backUp({}, { signal })) {
      await copy.add(keys.map((key, at) => ({ key, value: values[at] ?? NO_VALUE })));
      all = rows;
    }
    if (all !== copy.rows) throw failure("coordinator_silent", { address });
    return await copy.finish();
  } finally {
    await target.close();
  }
}
