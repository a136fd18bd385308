// Each coordinator process keeps its role in a small database of its own, named by its incarnation. A few of the last ones
// stay, for whoever wants to know what happened; a live one is never touched.
import { access, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { isUlid } from "../base/ids.ts";
import type { IncarnationId } from "../base/ids.ts";
import type { Logger } from "../observe/log.ts";
import { openLevelStore } from "../storage/level/level-store.ts";
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
  const incarnations = (await readdir(directory)).filter(isUlid).sort();
  for (const incarnation of incarnations.slice(0, -KEPT)) {
    const path = join(directory, incarnation);
    const isHeld = await access(`${path}.lock`).then(
      () => true,
      () => false,
    );
    if (!isHeld) await rm(path, { recursive: true, force: true });
  }
}
