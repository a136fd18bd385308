import { spawnSync } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { expect } from "chai";
import { withFailingCalls } from "../support/failing-system-calls.ts";
import type { StoreAnswer } from "./store-process.ts";
import { STORE_PROGRAM, useStoreProcesses } from "./store-process.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";

const keyOf = (number: number): string => `filled/${String(number).padStart(6, "0")}`;

/** The words that a program must have said when its disk was full, and the numbers that it acknowledged. */
function acknowledgedBefore(answers: readonly StoreAnswer[], reason: RegExp): number[] {
  const last = answers.at(-1);
  expect(last).to.include({ kind: "failed", code: "store_write_failed" });
  expect(last?.kind === "failed" ? last.message : "").to.match(reason);
  expect(answers.at(-2), "the handle is broken").to.deep.equal({ kind: "after_failure", outcome: "unknown" });
  return answers.flatMap((answer) => (answer.kind === "acknowledged" ? [answer.number] : []));
}

/** Everything that was acknowledged is there, and at most the one write besides whose outcome was unknown. */
function expectAcknowledged(found: readonly string[], acknowledged: readonly number[]): void {
  const expected = acknowledged.map(keyOf);
  expect(expected.length).to.be.greaterThan(3);
  expect(found.slice(0, expected.length)).to.deep.equal(expected);
  expect(found.length - expected.length).to.be.within(0, 1);
}

describe("a disk that takes no more", () => {
  const directory = useTemporaryDirectory();
  const start = useStoreProcesses();

  it("a write that the kernel refuses ends the process, and the next one finds all that was acknowledged", async () => {
    const path = directory.file("db");
    // A limit on the size of files is a real failed write that needs no rights: EFBIG.
    const limited = start(path, ["sh", "-c", 'ulimit -f 2048; exec "$@"', "sh"]);
    expect((await limited.answer()).kind).to.equal("open");
    const first = await limited.ask({ kind: "fill" });
    const acknowledged = acknowledgedBefore([first, ...(await limited.rest())], /File too large/);
    expect(await limited.exit()).to.equal(6);

    const next = start(path);
    expect((await next.answer()).kind).to.equal("open");
    const found = await next.ask({ kind: "keys" });
    expectAcknowledged(found.kind === "keys" ? found.keys : [], acknowledged);
    expect(await next.ask({ kind: "put", key: "after", text: "" })).to.deep.equal({ kind: "committed" });
  });

  it("a disk that answers an fsync with EIO ends the process, and the next one finds all that was acknowledged", async () => {
    const path = directory.file("db");
    // The fifteenth fsync fails and so does every later one, as a dying disk's do.
    const dying = start(path, withFailingCalls({ call: "fdatasync", error: "EIO", which: "15+" }));
    expect((await dying.answer()).kind).to.equal("open");
    const first = await dying.ask({ kind: "fill" });
    const acknowledged = acknowledgedBefore([first, ...(await dying.rest())], /Input\/output error/);
    expect(await dying.exit()).to.equal(6);

    const next = start(path);
    expect((await next.answer()).kind).to.equal("open");
    const found = await next.ask({ kind: "keys" });
    expectAcknowledged(found.kind === "keys" ? found.keys : [], acknowledged);
  });

  it("a full disk ends the process with ENOSPC, and once there is space all that was acknowledged is there", async () => {
    const disk = directory.file("disk");
    await mkdir(disk);
    // One mount namespace holds the small disk through all three acts, and takes it away at the end.
    const acts = [
      `mount -t tmpfs -o size=32m none "$1"`,
      `head -c 20000000 /dev/zero > "$1/ballast"`,
      `echo '{"kind":"fill"}' | "$2" "$3" "$1/db"`,
      `echo "exit $?"`,
      // The next start meets the same full disk: LevelDB has no room for a new log or table.
      `cat /dev/zero > "$1/more" 2>/dev/null`,
      `"$2" "$4" coordinator run --storage-path "$1/db" --run-id 01JZ0000000000000000000000 --listen-addr 127.0.0.1:0 2>&1`,
      `echo "exit $?"`,
      // LevelDB's attempt may have given pages back: three are enough for all that `init` writes.
      `cat /dev/zero > "$1/rest" 2>/dev/null`,
      `"$2" "$4" init --dir "$1/new" 2>&1`,
      `echo "exit $?"`,
      `rm "$1/ballast" "$1/more" "$1/rest"`,
      `printf '%s\\n' '{"kind":"keys"}' '{"kind":"put","key":"after","text":""}' '{"kind":"close"}' | "$2" "$3" "$1/db"`,
      `echo "exit $?"`,
    ];
    const script = `${acts.slice(0, 2).join(" && ")} || exit 99\n${acts.slice(2).join("\n")}`;
    const { status, stdout, stderr } = spawnSync(
      "unshare",
      [...namespaceFlags(), "sh", "-c", script, "sh", disk, process.execPath, STORE_PROGRAM, "bin/run.js"],
      { encoding: "utf8" },
    );
    expect(status, stderr).to.equal(0);
    const lines = stdout.trimEnd().split("\n");
    const filledAt = lines.indexOf("exit 6");
    expect(
      filledAt,
      `the first act ends with the code of a storage failure: ${stdout.slice(-2_000)}`,
    ).to.be.above(0);
    const answers = (part: readonly string[]): StoreAnswer[] =>
      part.map((line) => JSON.parse(line) as StoreAnswer);
    const acknowledged = acknowledgedBefore(
      answers(lines.slice(0, filledAt)),
      /no space left on device \(ENOSPC\)/,
    );
    expect(lines.at(-1)).to.equal("exit 0");
    const after = lines.slice(filledAt + 1, -1);
    const startedAt = after.lastIndexOf("exit 6");
    expect(after.slice(0, startedAt).join("\n"), "hints at space")
      .to.match(/^error: cannot open the database .*No space left on device \(free space, then start again/m)
      .and.match(
        /^error: cannot write .*: no space left on the disk \(free space and give the same command/m,
      );
    const [opened, found, put] = answers(after.slice(startedAt + 1));
    expect(opened?.kind).to.equal("open");
    expectAcknowledged(found?.kind === "keys" ? found.keys : [], acknowledged);
    expect(put).to.deep.equal({ kind: "committed" });
  });
});

/** A mount namespace of one's own, as root or with a user namespace. Without either the test fails and says so. */
function namespaceFlags(): string[] {
  for (const flags of [["-m"], ["-r", "-m"]]) {
    const tried = spawnSync("unshare", [...flags, "sh", "-c", 'mount -t tmpfs -o size=1m none "$0"', "/mnt"]);
    if (tried.status === 0) return flags;
  }
  throw new Error(
    "this test mounts a small tmpfs in a mount namespace: it needs `unshare` (util-linux), and root or user namespaces " +
      "(sysctl kernel.unprivileged_userns_clone=1, or a container with CAP_SYS_ADMIN)",
  );
}
