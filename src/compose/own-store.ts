// Each coordinator process keeps its role in a small database of its own, named by its incarnation. A few of the last ones
// stay, for whoever wants to know what happened; a live one is never touched.
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { isUlid } from "../base/ids.ts";
import type { IncarnationId } from "../base/ids.ts";
import type { Logger } from "../observe/log.ts";
import { findLiveHolder, holderFilePath } from "../storage/level/holder-file.ts";
import { openLevelStore } from "../storage/level/level-store.ts";
import { thisProcess } from "../storage/level/process-identity.ts";
import type { Store } from "../storage/store.ts";

const KEPT = 8;

export async function openOwnStore(
  stateDir: string,
  incarnation: IncarnationId,
  clock: Clock,
  log: Logger,
): Promise<Store> {
  const directory = join(stateDir, "coordinators");
  const store = await openLevelStore({
    path: join(directory, incarnation),
    holderName: "rollout coordinator run",
    clock,
    log,
  });
  await removeOldest(directory);
  return store;
}

async function removeOldest(directory: string): Promise<void> {
  const self = await thisProcess();
  const incarnations = (await readdir(directory)).filter(isUlid).sort();
  for (const incarnation of incarnations.slice(0, -KEPT)) {
    const path = join(directory, incarnation);
    // One that was killed has left its name behind.
    if ((await findLiveHolder(path, self)) !== undefined) continue;
    await rm(path, { recursive: true, force: true });
    await rm(holderFilePath(path), { force: true });
  }
}
