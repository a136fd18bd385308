// A worker that stands still between starting a process for an item and letting it go, for so long that the item is somebody
// else's by then: what it wakes up with does not begin.
import { readFileSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { QUICK, withCluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { eventually } from "../support/eventually.ts";
import { runUntil } from "../support/run-observer.ts";

/** Where it stands still: each is code for the worker's process, which stops itself there once. */
const STEPS: Readonly<Record<string, string>> = {
  "when it has asked for a process": `
    onStarter((starter) => {
      const { send } = starter;
      starter.send = (message, ...rest) => {
        const isSent = send.call(starter, message, ...rest);
        if (message.args?.includes("rollout-gate")) freeze();
        return isSent;
      };
    });`,
  "as soon as it hears of the process": `
    onStarter((starter) => starter.on("message", ({ kind }) => kind === "started" && freeze()));`,
  "before that is written down": `
    const { writeFile } = files;
    files.writeFile = (path, ...rest) => {
      if (isRecord(path)) freeze();
      return writeFile(path, ...rest);
    };`,
  "when that is written down": `
    const { writeFile } = files;
    files.writeFile = async (path, ...rest) => {
      await writeFile(path, ...rest);
      if (isRecord(path)) freeze();
    };`,
};

const PRELUDE = `
  import processes from "node:child_process";
  import files from "node:fs/promises";
  import { syncBuiltinESMExports } from "node:module";
  let isFrozen = false;
  const isRecord = (path) => /\\/children\\/\\w+\\/\\d+-/.test(String(path));
  const freeze = () => {
    if (!isFrozen) process.kill(process.pid, "SIGSTOP");
    isFrozen = true;
  };
  const onStarter = (watch) => {
    const { spawn } = processes;
    processes.spawn = (...words) => {
      const started = spawn(...words);
      if (started.channel) watch(started);
      return started;
    };
  };`;

describe("a worker that stood still for too long", () => {
  const it = concurrentTests(4);

  for (const [when, code] of Object.entries(STEPS))
    it(`${when}, does not let the process of an item go that others have executed`, () =>
      withCluster({ ...QUICK, "worker.slots": 1 }, async (cluster) => {
        const coordinator = await cluster.startCoordinator();
        writeFileSync(cluster.file("job.toml"), MANIFEST);
        writeFileSync(cluster.file("freeze.mjs"), `${PRELUDE}\n${code}\nsyncBuiltinESMExports();\n`);
        const args = ["--plugin", "job.toml"];
        const frozen = await cluster.startWorker({
          args,
          env: { NODE_OPTIONS: `--import ${cluster.file("freeze.mjs")}` },
        });
        await cluster.submit([1], ...args, "--seal");
        await eventually("it stands still", () => /^State:\s+T/m.test(statusOf(frozen.pid)));

        const other = await cluster.startWorker({ args });
        await coordinator.event("worker_failed", { worker_id: await frozen.id() });
        await runUntil(cluster, ({ done }) => done === 1);
        const recovered = coordinator.nextEvent("worker_recovered", { worker_id: await frozen.id() });
        frozen.send("SIGCONT");
        await recovered;
        // It has been told what became of the item, and has nothing any more.
        expect(await frozen.stop()).to.deep.equal({ code: 0, signal: null });
        await other.stop();
        expect(readFileSync(cluster.file("journal"), "utf8")).to.equal(`${await other.id()}\n`);
      }));
});

/** Each execution leaves the id of its worker. */
const MANIFEST = `
name = "job"
version = "1"
backend = "command"
[command]
command = ['echo "$ROLLOUT_WORKER_ID" >> journal']
shell = true
`;

function statusOf(pid: number): string {
  return readFileSync(`/proc/${pid}/status`, "utf8");
}
