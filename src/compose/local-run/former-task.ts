// The directory of a run of another task, of which nothing came: a mistyped command must not make an output its own. Keeps true: what
// has come to an end, done or failed, is never forgotten; whoever dies while it is forgotten leaves a run that begins anew.
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { RolloutError } from "../../base/errors.ts";
import { dropEmptyResults } from "../../cli/results/cursor-file.ts";
import type { Logger } from "../../observe/log.ts";
import { DONE_PREFIX, FAILED_PREFIX } from "../../storage/keys.ts";
import { openLevelStore } from "../../storage/level/level-store.ts";
import { prefixRange } from "../../storage/store.ts";
import { BEGUN_BY_FILE } from "./begun-by.ts";
import { CURSOR_FILE, DATABASE, STATE } from "./recorded.ts";
import type { Recorded } from "./recorded.ts";

/** Files that speak of the database go before it. Logs stay. */
const OF_ONE_TASK = [
  STATE,
  DATABASE,
  `${DATABASE}.lock`,
  "tls",
  "rollout.toml",
  "plugin.toml",
  "finished.json",
  BEGUN_BY_FILE,
];

/** Whether no item has come to an end. A database that somebody has open, or that cannot be read, is left to those who know it. */
export async function hasNothingRecorded(
  path: string,
  { hasDatabase, done, failed }: Recorded,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<boolean> {
  if (done + failed > 0) return false;
  if (!hasDatabase) return true;
  try {
    const store = await openLevelStore({ path: join(path, DATABASE), holderName: "rollout run", clock, log });
    try {
      const pages = [DONE_PREFIX, FAILED_PREFIX].map((prefix) =>
        store.scan({ ...prefixRange(prefix), limit: 1 }),
      );
      return (await Promise.all(pages)).every((page) => page.length === 0);
    } finally {
      await store.close();
    }
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    return false;
  }
}

/** Call it when `hasNothingRecorded`. */
export async function forgetRun(path: string): Promise<void> {
  await dropEmptyResults(join(path, CURSOR_FILE));
  for (const name of OF_ONE_TASK) await rm(join(path, name), { recursive: true, force: true });
}
