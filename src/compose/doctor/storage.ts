// Where the database is, and what it says of itself. One that somebody has open is not touched; one that nobody has is opened
// for a moment, as a coordinator would, because LevelDB has no other way to find out whether it is whole.
//
// Keeps true: a look makes no database, and stores nothing in one.
import { readdir, realpath, stat } from "node:fs/promises";
import type { Clock } from "../../base/clock.ts";
import { failure, RolloutError } from "../../base/errors.ts";
import type { RunId } from "../../base/ids.ts";
import { findDamages } from "../../coordinator/quarantine/known-rows.ts";
import { substituteFor } from "../../coordinator/quarantine/substitute.ts";
import { readSetAside } from "../../coordinator/ledger/quarantine-record.ts";
import type { SetAsideItem } from "../../coordinator/ledger/quarantine-record.ts";
import type { HintedLine } from "../../cli/shell-words.ts";
import type { Store } from "../../storage/store.ts";
import type { Damage } from "../../storage/codec.ts";
import type { StatFs } from "../../storage/level/directory.ts";
import { freeBytes, refuseUnlessDatabaseOrEmpty, unusable } from "../../storage/level/directory.ts";
import { describeHolder, findLiveHolder } from "../../storage/level/holder-file.ts";
import { openLevelStore } from "../../storage/level/level-store.ts";
import { thisProcess } from "../../storage/level/process-identity.ts";
import { examineStoreIdentity } from "../../storage/store-identity.ts";
import { LOOKERS } from "../store-holders.ts";
import { refuseLostDatabase } from "../local-run/run-record.ts";
import type { Finding } from "./finding.ts";
import { good, warning } from "./finding.ts";
import { examinePlace } from "./place.ts";

/** Rows that are named. */
const DAMAGES_SHOWN = 20;
const MIB = 2 ** 20;
/** Below it a run of any size will meet the end of the disk. */
const FREE_WANTED = 1_024 * MIB;

export interface StorageLook {
  readonly path: string;
  /** The run to which it has to belong. */
  readonly runId: RunId;
  readonly statFs: StatFs;
  readonly clock: Clock;
  readonly line: HintedLine;
}

/** Throws store_… rows. */
export async function examineStorage(look: StorageLook): Promise<readonly Finding[]> {
  const { path, statFs } = look;
  try {
    const place = await examinePlace(path, statFs);
    if (place.kind === "unusable")
      throw failure("store_unusable", {
        path,
        reason: place.reason,
        advice: "use the path of a directory that this user may write to, or of nothing yet",
      });
    await refuseLostDatabase(path);
    const database = place.isThere
      ? await examineDatabase(look)
      : [good("database", `${path}: it will be made at the first start`)];
    return [...database, ...(await examineSpace(place.nearest, statFs))];
  } catch (error) {
    throw unusable(path, error);
  }
}

async function examineDatabase(look: StorageLook): Promise<readonly Finding[]> {
  const { path } = look;
  const real = await realpath(path);
  const holder = await findLiveHolder(real, await thisProcess());
  if (holder !== undefined) return [good("database", `${path}: open by ${describeHolder(holder)}`)];
  await refuseUnlessDatabaseOrEmpty(real);
  if (!(await readdir(real)).includes("CURRENT"))
    return [good("database", `${path}: it is empty, and will be made at the first start`)];
  const { uid } = await stat(real);
  // Files written when it is opened would be ours, and its owner could not open it any more.
  if (uid !== process.getuid?.())
    return [
      warning(
        "database",
        `${path}: nobody has it open; it belongs to another user, and was not looked into`,
        `run this as the user with the number ${uid}`,
      ),
    ];
  return examineInside(look);
}

async function examineInside({ path, runId, clock, line }: StorageLook): Promise<readonly Finding[]> {
  try {
    const store = await openLevelStore({ path, holderName: LOOKERS.doctor, clock });
    try {
      return await examineRows(store, { path, runId, line, nobody: "nobody has it open" });
    } finally {
      await store.close();
    }
  } catch (error) {
    // Somebody was faster.
    if (!(error instanceof RolloutError) || error.code !== "store_held") throw error;
    return [good("database", `${path}: open by ${error.params["holder"] ?? ""}`)];
  }
}

/** The rows of a database that is nobody else's now. `nobody` says so. Throws store_… rows. */
export async function examineRows(
  store: Store,
  { path, runId, line, nobody }: Pick<StorageLook, "path" | "runId" | "line"> & { readonly nobody: string },
): Promise<readonly Finding[]> {
  const found = (words: string): Finding => good("database", `${path}: ${nobody}, ${words}`);
  const identity = await examineStoreIdentity(store, runId);
  if (identity === undefined) return [found("and nothing was written to it yet")];
  const damages = await findDamages(store);
  if (damages.length > 0) return damagesFound(path, damages, store, line);
  const aside = await readSetAside(store);
  return [found("its rows are whole, and it is of this run"), ...asideFound(aside)];
}

async function damagesFound(
  path: string,
  damages: readonly Damage[],
  store: Store,
  line: HintedLine,
): Promise<readonly Finding[]> {
  const looks = damages.slice(0, DAMAGES_SHOWN).map(async (damage): Promise<Finding> => {
    const { key } = damage;
    const error =
      damage.kind === "newer"
        ? failure("store_newer", { path, key, found: damage.found, known: damage.known })
        : failure("store_corrupt", { path, key, reason: damage.reason });
    const isVital = damage.kind === "newer" || (await substituteFor(store, key)).kind === "vital";
    const remedy = isVital
      ? "nothing can take its place: restore the database, or give the work to another run"
      : `\`${line("doctor", "--quarantine", key)}\` sets it aside`;
    const hint = damage.kind === "newer" ? error.hint : `\`${line("results")}\` exports the rest; ${remedy}`;
    return { subject: "database", verdict: "failure", detail: error.message, hint, error };
  });
  const shown = await Promise.all(looks);
  const more = damages.length - shown.length;
  const hint = "set aside those that are named, and look again";
  return more === 0 ? shown : [...shown, warning("database", `${more} more rows cannot be read`, hint)];
}

function asideFound(aside: ReadonlyMap<string, SetAsideItem>): readonly Finding[] {
  if (aside.size === 0) return [];
  const keys = [...aside.values()].map(({ key }) => key);
  const more = keys.length > DAMAGES_SHOWN ? ` and ${keys.length - DAMAGES_SHOWN} more` : "";
  const detail = `items without a result, whose rows were set aside: ${keys.slice(0, DAMAGES_SHOWN).join(", ")}${more}`;
  return [
    warning("quarantine", detail, "submit them to another run: in this one nothing will become of them"),
  ];
}

async function examineSpace(path: string, statFs: StatFs): Promise<readonly Finding[]> {
  const free = await freeBytes(path, statFs);
  if (free === undefined) return [];
  const detail = `${Math.floor(free / MIB)} MiB free where the database is`;
  if (free >= FREE_WANTED) return [good("disk", detail)];
  return [warning("disk", detail, "free some space: a coordinator that cannot write ends")];
}
