// Files that this process obeys, executes and keeps secrets in: they belong to its own user or to root, and nobody else may write
// to them. Checked at each start, because a directory may have been made by somebody else, or opened to others meanwhile.
//
// Keeps true: what is rollout's own and too wide is narrowed; what belongs to others, or leads there by a link, is refused with
// `not_trusted`. A file that is not there passes: its reader says so.
import type { Dirent, Stats } from "node:fs";
import { chmod, lstat, readdir, readFile, readlink, stat } from "node:fs/promises";
import { dirname, join, parse, resolve } from "node:path";
import { errnoOf, failure } from "./errors.ts";
import type { RolloutError } from "./errors.ts";
import { systemReason } from "./system-reason.ts";

/** The user of this process; undefined where files have no owner. */
export interface Owner {
  readonly uid: number;
}

const ROOT = 0;
const OTHERS_WRITE = 0o002;
const GROUP_WRITES = 0o020;
const WRITABLE = GROUP_WRITES | OTHERS_WRITE;
const BEYOND_OWNER = 0o077;
const LINKS_MAX = 40;

export function thisUser(): Owner | undefined {
  const uid = process.geteuid?.();
  return uid === undefined ? undefined : { uid };
}

/** A directory of rollout's own: for its user alone when this resolves. Throws not_trusted. */
export async function keepDirectoryPrivate(path: string, me: Owner | undefined = thisUser()): Promise<void> {
  const found = me && (await trustedOwner(path, me));
  if (me === undefined || found === undefined) return;
  if (found.uid === me.uid) return narrow(path, found, BEYOND_OWNER);
  if ((found.mode & WRITABLE) !== 0) throw writable(path, found);
}

/**
 * A place that holds directories of rollout's own, each of which is checked by itself: one of root's may be open to others, as a
 * volume that is mounted for a container is. Throws not_trusted.
 */
export async function keepPlaceTrusted(path: string, me: Owner | undefined = thisUser()): Promise<void> {
  const found = me && (await trustedOwner(path, me));
  if (me !== undefined && found?.uid === me.uid) await narrow(path, found, WRITABLE);
}

/**
 * A directory of rollout's own with all that is in it: files that others may write to are narrowed as well. `leavesLinks`: whoever
 * follows the links of that directory looks at them then. Throws not_trusted.
 */
export async function keepTreePrivate(
  path: string,
  me: Owner | undefined = thisUser(),
  leavesLinks: (directory: string) => boolean = () => false,
): Promise<void> {
  if (me === undefined) return;
  await keepDirectoryPrivate(path, me);
  for (const entry of await entriesOf(path)) {
    const inside = join(path, entry.name);
    const isLink = entry.isSymbolicLink();
    if (entry.isDirectory()) await keepTreePrivate(inside, me, leavesLinks);
    else if (!isLink || !leavesLinks(path)) await keepFileUnwritable(inside, isLink, me);
  }
}

/** The same of a directory that a user has named, in which something else may be as well: that is left alone. Throws not_trusted. */
export async function keepFilesPrivate(
  path: string,
  isOwn: (name: string) => boolean,
  me: Owner | undefined = thisUser(),
): Promise<void> {
  if (me === undefined) return;
  await keepDirectoryPrivate(path, me);
  for (const entry of await entriesOf(path))
    if (isOwn(entry.name) && !entry.isDirectory())
      await keepFileUnwritable(join(path, entry.name), entry.isSymbolicLink(), me);
}

async function entriesOf(path: string): Promise<Dirent[]> {
  return readdir(path, { withFileTypes: true }).catch((error: unknown) => {
    if (errnoOf(error) === "ENOENT") return [];
    throw failure("not_trusted", { path, reason: systemReason(error), advice: ADVICE_OWNER });
  });
}

async function keepFileUnwritable(path: string, isLink: boolean, me: Owner): Promise<void> {
  // The way to what is no link has been looked at with its directory.
  const found = await (isLink ? trustedOwner(path, me) : unlessMissing(lstat(path)));
  if (found === undefined || found.isSocket()) return;
  if (!isOf(me, found)) throw foreign(path, `it belongs to another user (uid ${found.uid})`);
  if (found.uid === me.uid && !isLink) return narrow(path, found, WRITABLE);
  if ((found.mode & WRITABLE) !== 0) throw writable(path, found);
}

/** A file that a user has written for rollout to obey. His own group may write to it, nobody else. Throws not_trusted. */
export async function demandTrusted(path: string, me: Owner | undefined = thisUser()): Promise<void> {
  const found = me && (await trustedOwner(path, me));
  if (me === undefined || found === undefined) return;
  const isGroups = (found.mode & GROUP_WRITES) !== 0 && !(await isPrivateGroup(found.gid, me));
  if ((found.mode & OTHERS_WRITE) !== 0 || isGroups) throw writable(path, found);
}

/** The file or directory at the end of the path; undefined when there is none. Throws not_trusted when it, or a link on the way, is neither this user's nor root's. */
async function trustedOwner(path: string, me: Owner): Promise<Stats | undefined> {
  const link = await firstLink(resolve(path), (found) => !isOf(me, found));
  if (link !== undefined) throw foreign(path, `the link ${link} on the way there belongs to another user`);
  const found = await unlessMissing(stat(path));
  // A pipe or a device keeps nothing that others could have put there.
  if (found === undefined || !(found.isFile() || found.isDirectory())) return undefined;
  if (!isOf(me, found)) throw foreign(path, `it belongs to another user (uid ${found.uid})`);
  return found;
}

function isOf(me: Owner, { uid }: Stats): boolean {
  return uid === me.uid || uid === ROOT;
}

/** The first link, as the system follows them, of which `isWanted` holds. */
async function firstLink(path: string, isWanted: (link: Stats) => boolean): Promise<string | undefined> {
  const { root } = parse(path);
  let at = root;
  let names = partsOf(path);
  for (let links = 0; names.length > 0 && links <= LINKS_MAX;) {
    const [name = "", ...rest] = names;
    const next = join(at, name);
    const found = await unlessMissing(lstat(next));
    if (found === undefined) return undefined;
    if (!found.isSymbolicLink()) {
      [at, names] = [next, rest];
      continue;
    }
    if (isWanted(found)) return next;
    links++;
    [at, names] = [root, [...partsOf(resolve(dirname(next), await readlink(next))), ...rest]];
  }
  return undefined;
}

function partsOf(path: string): string[] {
  return path
    .slice(parse(path).root.length)
    .split("/")
    .filter((name) => name !== "");
}

async function narrow(path: string, { mode }: Stats, bits: number): Promise<void> {
  if ((mode & bits) === 0) return;
  try {
    await chmod(path, mode & 0o7777 & ~bits);
  } catch (error) {
    // Where nothing can be written, others cannot either.
    if (errnoOf(error) === "EROFS") return;
    const reason = `others may use it (mode ${modeText(mode)}), which cannot be changed: ${systemReason(error)}`;
    throw failure("not_trusted", { path, reason, advice: ADVICE_OWNER }, error);
  }
}

/** A group that has nobody in it but its user, as systems with umask 002 give one to each. Root's is as root. */
async function isPrivateGroup(gid: number, me: Owner): Promise<boolean> {
  if (gid === ROOT) return true;
  const [users, groups] = await Promise.all(["/etc/passwd", "/etc/group"].map(fieldsOf));
  const user = users?.find(([, , uid]) => Number(uid) === me.uid);
  const group = groups?.find(([, , id]) => Number(id) === gid);
  const isShared = users?.some(([, , uid, primary]) => Number(primary) === gid && Number(uid) !== me.uid);
  const members = (group?.[3] ?? "").split(",").filter((name) => name !== "" && name !== user?.[0]);
  if (isShared === true || members.length > 0) return false;
  // A directory service has the same custom: the group has the user's name, or number.
  return gid === me.uid || (group !== undefined && group[0] === user?.[0]);
}

async function fieldsOf(file: string): Promise<string[][]> {
  const text = await readFile(file, "utf8").catch(() => "");
  return text.split("\n").map((line) => line.split(":"));
}

async function unlessMissing(looked: Promise<Stats>): Promise<Stats | undefined> {
  return looked.catch(() => undefined);
}

const ADVICE_OWNER = "use one of your own";

function foreign(path: string, reason: string): RolloutError {
  return failure("not_trusted", { path, reason, advice: ADVICE_OWNER });
}

function writable(path: string, { mode }: Stats): RolloutError {
  const reason = `others than its owner may write to it (mode ${modeText(mode)})`;
  return failure("not_trusted", { path, reason, advice: `run \`chmod go-w ${path}\` as its owner` });
}

function modeText(mode: number): string {
  return (mode & 0o777).toString(8).padStart(3, "0");
}
