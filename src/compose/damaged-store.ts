// The database of a coordinator that cannot lead because of what it has met there, read by the command itself: what is left of the
// results is the user's. Only where the database is, and while nobody has it open or leads with it.
import { createRouterTransport } from "@connectrpc/connect";
import { access } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { RolloutError } from "../base/errors.ts";
import type { Random } from "../base/random.ts";
import type { ResolvedConfig } from "../config/resolve.ts";
import { damagedRun } from "../coordinator/quarantine/damaged-run.ts";
import { findDamages } from "../coordinator/quarantine/known-rows.ts";
import type { Damage } from "../storage/codec.ts";
import type { Logger } from "../observe/log.ts";
import { openLevelStore } from "../storage/level/level-store.ts";
import type { Store } from "../storage/store.ts";
import { examineStoreIdentity } from "../storage/store-identity.ts";
import { LOOKERS } from "./store-holders.ts";
import { RolloutClient } from "./rollout-client.ts";
import { openUnled } from "./unled-store.ts";
import type { UnledLook } from "./unled-store.ts";

export interface DamagedStore {
  readonly client: RolloutClient;
  readonly damages: readonly Damage[];
  readonly close: () => Promise<void>;
}

/** Undefined where a coordinator could lead, or there is no database, or somebody has it. Throws other store_… rows. */
export async function openDamagedStore(
  config: Pick<ResolvedConfig, "storage" | "runId" | "coordinator">,
  ports: { readonly clock: Clock; readonly random: Random; readonly log: Logger },
): Promise<DamagedStore | undefined> {
  const { storage, runId, coordinator } = config;
  const store =
    storage.postgres === undefined
      ? await openFree(storage.path, ports.clock)
      : await openQuiet({
          ...ports,
          storage: storage.postgres,
          runId,
          ttlMs: coordinator.failoverThresholdMs,
        });
  if (store === undefined) return undefined;
  try {
    const identity = await examineStoreIdentity(store, runId);
    const damages = identity === undefined ? [] : await findDamages(store);
    if (identity !== undefined && damages.length > 0) {
      const transport = createRouterTransport(
        await damagedRun(store, identity.storeId, damages, ports.clock),
      );
      const way = { transport, close: () => undefined, itemBytesMax: 0, taskOf: notHere };
      return { client: RolloutClient.over(way), damages, close: () => store.close() };
    }
  } catch (error) {
    await store.close();
    throw error;
  }
  await store.close();
  return undefined;
}

async function openQuiet(look: UnledLook): Promise<Store | undefined> {
  const found = await openUnled(look);
  return found.kind === "free" ? found.store : undefined;
}

async function openFree(path: string, clock: Clock): Promise<Store | undefined> {
  const isThere = await access(join(path, "CURRENT")).then(
    () => true,
    () => false,
  );
  if (!isThere) return undefined;
  try {
    return await openLevelStore({ path, holderName: LOOKERS.results, clock });
  } catch (error) {
    if (error instanceof RolloutError && error.code === "store_held") return undefined;
    throw error;
  }
}

function notHere(): Promise<never> {
  return Promise.reject(new Error("nothing is submitted to a damaged database"));
}
