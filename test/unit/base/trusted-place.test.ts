import { expect } from "chai";
import { lchown } from "node:fs/promises";
import { chmodSync, chownSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import {
  demandTrusted,
  keepDirectoryPrivate,
  keepFilesPrivate,
  keepPlaceTrusted,
  keepTreePrivate,
  thisUser,
} from "../../../src/base/trusted-place.ts";
import type { Owner } from "../../../src/base/trusted-place.ts";
import { failureOf } from "../../support/rejection.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";

const NOBODY = { uid: 65_534 };
const STRANGER = 12_345;
const isRoot = thisUser()?.uid === 0;

/** Makes it somebody else's as root can; otherwise it is to a user that we are not. */
async function foreignTo(path: string): Promise<Owner> {
  if (isRoot) await lchown(path, STRANGER, STRANGER);
  return isRoot ? { uid: 0 } : NOBODY;
}

interface User {
  readonly uid: number;
  readonly gid: number;
}

/** Users of this machine that have the number of their group, by whether another's group is the same. */
function usersByGroup(): { readonly alone: User | undefined; readonly sharing: User | undefined } {
  const lines = (file: string): string[][] =>
    readFileSync(file, "utf8")
      .split("\n")
      .map((line) => line.split(":"));
  const users = lines("/etc/passwd").map(([, , uid, gid]) => ({ uid: Number(uid), gid: Number(gid) }));
  const own = users.filter(({ uid, gid }) => uid > 0 && uid === gid);
  const isShared = (user: User): boolean =>
    users.some(({ uid, gid }) => gid === user.gid && uid !== user.uid);
  const isEmpty = ({ gid }: User): boolean =>
    lines("/etc/group").some(([, , id, members]) => Number(id) === gid && members === "");
  return { alone: own.find((user) => !isShared(user) && isEmpty(user)), sharing: own.find(isShared) };
}

describe("a trusted place", () => {
  const directory = useTemporaryDirectory();
  const modeOf = (name: string): string => (statSync(directory.file(name)).mode & 0o777).toString(8);

  function make(name: string, mode: number): string {
    const path = directory.file(name);
    writeFileSync(path, "");
    chmodSync(path, mode);
    return path;
  }

  function makeDirectory(name: string, mode: number): string {
    const path = directory.file(name);
    mkdirSync(path);
    chmodSync(path, mode);
    return path;
  }

  const refusalOf = async (checked: Promise<void>): Promise<string> => (await failureOf(checked)).message;

  it("is narrowed with all that is in it, when it is rollout's own", async () => {
    const path = makeDirectory("run", 0o777);
    makeDirectory("run/state", 0o775);
    for (const [name, mode] of [
      ["run/plugin.toml", 0o666],
      ["run/state/log", 0o664],
      ["run/state/public", 0o644],
    ] as const)
      make(name, mode);
    await keepTreePrivate(path);
    const names = ["run", "run/state", "run/plugin.toml", "run/state/log", "run/state/public"];
    expect(names.map(modeOf)).to.deep.equal(["700", "700", "644", "644", "644"]);
  });

  it("is narrowed with those of its files that are rollout's, when a user has named it", async () => {
    const path = makeDirectory("named", 0o777);
    for (const name of ["named/key.pem", "named/notes"]) make(name, 0o666);
    makeDirectory("named/inside", 0o777);
    await keepFilesPrivate(path, (name) => name !== "notes");
    const names = ["named", "named/key.pem", "named/notes", "named/inside"];
    expect(names.map(modeOf)).to.deep.equal(["700", "644", "666", "777"]);
  });

  it("is read by others and written by none, when it only holds directories of rollout's", async () => {
    await keepPlaceTrusted(makeDirectory("place", 0o777));
    expect(modeOf("place")).to.equal("755");
  });

  it("is refused when it belongs to somebody else, or anything in it does", async () => {
    const path = makeDirectory("run", 0o700);
    const file = make("run/plugin.toml", 0o600);
    const me = await foreignTo(file);
    expect(await refusalOf(demandTrusted(file, me))).to.include("it belongs to another user");
    if (isRoot) expect(await refusalOf(keepTreePrivate(path, me))).to.include(`${file} is not to be trusted`);
    await foreignTo(path);
    for (const check of [keepDirectoryPrivate, keepPlaceTrusted, keepTreePrivate])
      expect(await refusalOf(check(path, me))).to.include(`${path} is not to be trusted: it belongs`);
  });

  it("counts as one's own when it is root's, but cannot be narrowed then", async () => {
    const place = "/var/empty-of-no-test";
    await keepDirectoryPrivate("/usr", NOBODY);
    await keepDirectoryPrivate(place, NOBODY);
    expect(await refusalOf(keepDirectoryPrivate("/tmp", NOBODY))).to.include("may write to it");
    await keepPlaceTrusted("/tmp", NOBODY);
  });

  it("may be written to by a user's own group, and by nobody else", async () => {
    const me = thisUser();
    // Root's group counts as root; a user's is one of his number.
    if (statSync(directory.path).gid === me?.uid) await demandTrusted(make("manifest", 0o664));
    expect(await refusalOf(demandTrusted(make("open", 0o666)))).to.equal(
      `${directory.file("open")} is not to be trusted: others than its owner may write to it (mode 666)`,
    );
  });

  // Only root gives files away.
  if (isRoot)
    it("may be written to by a group that is one user's alone, and by no group of several", async () => {
      const path = make("manifest", 0o664);
      chownSync(path, 0, STRANGER);
      expect(await refusalOf(demandTrusted(path))).to.include("may write to it (mode 664)");
      const { alone, sharing } = usersByGroup();
      if (alone !== undefined) {
        chownSync(path, alone.uid, alone.gid);
        await demandTrusted(path, alone);
      }
      if (sharing !== undefined) {
        chownSync(path, sharing.uid, sharing.gid);
        expect(await refusalOf(demandTrusted(path, sharing))).to.include("may write to it (mode 664)");
      }
    });

  it("may be reached by links of its owner's, as a secret that is mounted is", async () => {
    makeDirectory("..2026", 0o755);
    make("..2026/key", 0o600);
    symlinkSync("..2026", directory.file("..data"));
    symlinkSync("..data/key", directory.file("key"));
    await demandTrusted(directory.file("key"));
    chmodSync(directory.file("..2026/key"), 0o602);
    expect(await refusalOf(demandTrusted(directory.file("key")))).to.include("(mode 602)");
  });

  it("leaves the links of one directory to who follows them, and no others", async () => {
    const path = makeDirectory("run", 0o700);
    make("open", 0o666);
    makeDirectory("run/plugins", 0o777);
    symlinkSync("../../open", directory.file("run/plugins/linked.toml"));
    make("run/plugins/own.toml", 0o666);
    expect(await refusalOf(keepTreePrivate(path))).to.include("linked.toml");
    const isPlugins = (at: string): boolean => at === directory.file("run/plugins");
    await keepTreePrivate(path, undefined, isPlugins);
    expect([modeOf("run/plugins"), modeOf("run/plugins/own.toml"), modeOf("open")]).to.deep.equal([
      ...["700", "644", "666"],
    ]);
    symlinkSync("../open", directory.file("run/other.toml"));
    expect(await refusalOf(keepTreePrivate(path, undefined, isPlugins))).to.include("other.toml");
  });

  it("is refused when a link in it is another's, or leads to what others may write to", async () => {
    const path = makeDirectory("run", 0o700);
    make("open", 0o666);
    symlinkSync("../open", directory.file("run/plugin.toml"));
    expect(await refusalOf(keepTreePrivate(path))).to.include("may write to it (mode 666)");
    expect(modeOf("open")).to.equal("666");
    const me = await foreignTo(directory.file("run/plugin.toml"));
    expect(await refusalOf(demandTrusted(directory.file("run/plugin.toml"), me))).to.include(
      isRoot ? "run/plugin.toml on the way there belongs to another user" : "belongs to another user",
    );
  });

  it("passes when it does not exist, and when it is a pipe", async () => {
    for (const check of [keepDirectoryPrivate, keepPlaceTrusted, demandTrusted])
      await check(directory.file("nothing"));
    await demandTrusted("/dev/stdin");
  });
});
