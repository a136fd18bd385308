// Finds the program of a command as the system would, so that one that is missing is known before anything is started.
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";
import { errnoOf } from "../../base/errors.ts";
import { systemReason } from "../../base/system-reason.ts";

export type Program =
  | { readonly kind: "found"; readonly path: string }
  | { readonly kind: "missing"; readonly reason: string };

/** Where a system looks when PATH is not set. */
const PATH_DEFAULT = "/usr/local/bin:/usr/bin:/bin";

/** `path` is absolute. A name with a slash is relative to `cwd`, one without is looked for in `searched`, a PATH. */
export async function findProgram(name: string, cwd: string, searched: string | undefined): Promise<Program> {
  const directory = await stat(cwd).catch(systemReason);
  if (typeof directory === "string") return missing(`the working directory ${cwd}: ${directory}`);
  if (!directory.isDirectory()) return missing(`the working directory ${cwd}: it is not a directory`);
  if (name === "") return missing("the command is empty");
  const asPath = name.includes("/");
  const places = asPath ? [""] : (searched ?? PATH_DEFAULT).split(delimiter);
  let reason = asPath ? "it does not exist" : "no directory of the PATH has it";
  for (const place of places) {
    const inPlace = join(place, name);
    const path = isAbsolute(inPlace) ? inPlace : join(cwd, inPlace);
    const obstacle = await obstacleOf(path);
    if (obstacle === undefined) return { kind: "found", path };
    if (obstacle !== "absent") reason = `${obstacle} (${path})`;
  }
  return missing(`the program ${name}: ${reason}`);
}

function missing(reason: string): Program {
  return { kind: "missing", reason };
}

/** Why a file cannot be executed; undefined when it can. */
async function obstacleOf(path: string): Promise<string | undefined> {
  try {
    if (!(await stat(path)).isFile()) return "it is not a file";
    await access(path, constants.X_OK);
    return undefined;
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === "ENOENT" || errno === "ENOTDIR") return "absent";
    return errno === "EACCES" ? "it may not be executed" : systemReason(error);
  }
}
