import { expect } from "chai";
import { execFileSync } from "node:child_process";
import { closeSync, constants, existsSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { eventually } from "../support/eventually.ts";
import { openFiles } from "../support/item-behaviour.ts";
import { withLocalRun } from "../support/local-run.ts";

/** An item that says which descriptors it hands on, by number and with the list itself as 3, and waits. */
const SCRIPT = `cat >/dev/null; env >environment; ls /proc/self/fd >descriptors.new; mv descriptors.new descriptors; sleep 600`;
/** A shell that has opened files, as one may in which somebody starts a run. */
const OPEN_FILES = ["bash", "-c", `exec 7<in.jsonl 25<in.jsonl; exec "$@"`, "bash"];

describe("the processes of `rollout run`", () => {
  it("have no descriptor of its database, and an item has the standard streams and no other, nor settings", async () => {
    await withLocalRun({ items: 1 }, async (place) => {
      writeFileSync(place.file("work.sh"), SCRIPT);
      const run = place.launch(place.words(), OPEN_FILES);
      await eventually("the item runs", () => existsSync(place.file("descriptors")));
      expect(readFileSync(place.file("descriptors"), "utf8")).to.equal("0\n1\n2\n3\n");
      const names = readFileSync(place.file("environment"), "utf8").match(/^ROLLOUT_\w+(?==)/gm) ?? [];
      expect(names.sort()).to.deep.equal([
        "ROLLOUT_ATTEMPT",
        "ROLLOUT_CHECKPOINT",
        "ROLLOUT_ITEM_ID",
        "ROLLOUT_RUN_ID",
        "ROLLOUT_SLOT",
        "ROLLOUT_WORKER_ID",
      ]);
      const ofRun = (pid: number): string[] => openFiles(pid).filter((file) => file.includes("/supervisor/"));
      expect(ofRun(run.pid)).to.not.deep.equal([]);
      for (const pid of [place.coordinatorPid, ...(await place.workerPids())])
        expect(ofRun(pid)).to.deep.equal([]);
    });
  });

  it("close nothing that a thread of their own reads, as the certificates of NODE_EXTRA_CA_CERTS", async () => {
    await withLocalRun({ items: 1 }, async (place) => {
      const certificates = place.file("certificates");
      execFileSync("mkfifo", [certificates]);
      const held = openSync(certificates, constants.O_RDWR);
      const run = place.launch(place.words(), ["env", `NODE_EXTRA_CA_CERTS=${certificates}`]);
      try {
        const coordinator = await eventually(
          "its database is open",
          () => existsSync(place.file("out.jsonl.rollout/rollout.db.lock")) && place.coordinatorPid,
        );
        await eventually("its thread reads them", () => openFiles(coordinator).includes(certificates));
      } finally {
        // A thread that has opened it reads its end; one that comes later finds nothing.
        rmSync(certificates);
        closeSync(held);
      }
      expect((await run.ended).code).to.equal(0);
    });
  });
});
