// Where the workers of this machine, and its coordinator, keep what is their own.
import { failure } from "../../base/errors.ts";
import type { StatFs } from "../../storage/level/directory.ts";
import type { Finding } from "./finding.ts";
import { good } from "./finding.ts";
import { examinePlace } from "./place.ts";

/** Throws file_unwritable, and store_unusable where no database can be. */
export async function examineStateDirectory(path: string, statFs: StatFs): Promise<readonly Finding[]> {
  const place = await examinePlace(path, statFs);
  if (place.kind === "unusable") throw failure("file_unwritable", { file: path, reason: place.reason });
  const use = place.isThere ? "it can be written" : "it will be made at the first start";
  return [good("state directory", `${path}: ${use}`)];
}
