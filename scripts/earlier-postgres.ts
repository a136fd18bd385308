// `node scripts/earlier-postgres.ts [COMMIT]`: makes the fixtures of test/e2e/earlier/first-postgres anew, with the program as it was at that commit: the
// packed program, and a dump of a run in the middle by `pg_dump`, as docs/OPERATIONS.md tells users to make one. Without a
// commit the packed program stays. ROLLOUT_TEST_POSTGRES_URL names the server, which is no newer than the `pg_dump` on the PATH.
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { gzipSync } from "node:zlib";
import { sleep, systemClock } from "../src/base/clock.ts";
import { EARLIER, unpackEarlier } from "../test/e2e/earlier/earlier-package.ts";
import { withCluster } from "../test/support/cluster.ts";
import type { Cluster } from "../test/support/cluster.ts";
import { eventually } from "../test/support/eventually.ts";
import { GATED_MANIFEST, gatedItems, writeGatedFunction } from "../test/e2e/gated-items.ts";
import { runUntil } from "../test/support/run-observer.ts";
import { inNewDatabase } from "../test/support/postgres-database.ts";

const SERVER = process.env["ROLLOUT_TEST_POSTGRES_URL"];
const COMMIT = process.argv[2];
/** Each of them is in the dump. */
const WANTED = ["done/", "failed/", "running/", "items/", "delayed/", "workers/", "submissions/"];
const DELAYED_AFTER_MS = 12_000;

if (SERVER === undefined) throw new Error("name a server");
const place = mkdtempSync(join(tmpdir(), "rollout-earlier-"));
try {
  mkdirSync(EARLIER, { recursive: true });
  if (COMMIT !== undefined) pack(COMMIT, place);
  const program = unpackEarlier(mkdtempSync(join(place, "unpacked-")));
  await inNewDatabase(SERVER, (url) =>
    withCluster(settingsOf(url), (cluster) => dumpRun(cluster, program, url)),
  );
} finally {
  rmSync(place, { recursive: true, force: true });
}

function pack(commit: string, directory: string): void {
  const source = join(directory, "source");
  mkdirSync(source);
  execFileSync("sh", ["-c", `git archive ${commit} | tar -x -C ${source}`]);
  symlinkSync(resolve("node_modules"), join(source, "node_modules"));
  const words = ["pack", "--ignore-scripts", "--pack-destination", directory];
  execFileSync(process.execPath, ["scripts/build.ts"], { cwd: source, stdio: "inherit" });
  execFileSync("npm", words, { cwd: source, stdio: "ignore" });
  const packed = readdirSync(directory).find((name) => name.endsWith(".tgz"));
  copyFileSync(join(directory, String(packed)), join(EARLIER, "rollout.tar.gz"));
}

function settingsOf(url: string): Parameters<typeof withCluster>[0] {
  return {
    "storage.path": undefined,
    "storage.url": url,
    "worker.plugins": [GATED_MANIFEST],
    "worker.slots": 4,
    "coordinator.heartbeat_interval": "200ms",
    "coordinator.failover_threshold": "1s",
  };
}

/** Ten items are done, one has failed for good, three are running, three have failed and wait, and the rest wait: the run is paused. */
async function dumpRun(cluster: Cluster, program: string, url: string): Promise<void> {
  const run = async (...words: string[]): Promise<string> => {
    const command = cluster.launch(words, { program });
    const { code } = await command.ended;
    if (code !== 0) throw new Error(command.describe());
    return command.stdout.join("\n");
  };
  const submit = async (items: readonly object[], ...flags: string[]): Promise<void> => {
    writeFileSync(cluster.file("items.jsonl"), items.map((item) => `${JSON.stringify(item)}\n`).join(""));
    await run("submit", "items.jsonl", ...flags);
  };
  const until = (wanted: Readonly<Record<string, number>>): Promise<unknown> =>
    eventually(JSON.stringify(wanted), async () => {
      const status = JSON.parse(await run("status", "--json")) as Record<string, unknown>;
      return Object.entries(wanted).every(([name, value]) => status[name] === value);
    });
  await writeGatedFunction(cluster.directory);
  await cluster.startCoordinator({ program });
  await cluster.startWorker({ program });
  await cluster.startWorker({ program });
  await submit([...gatedItems(0, 10), ...gatedItems(10, 11, { cure: "never" })]);
  await until({ done: 10, failed: 1 });
  await submit(gatedItems(11, 14, { gate: "later" }));
  await until({ running: 3 });
  await run("ca", "issue", "--out", "other.pem");
  await run("ca", "issue", "--out", "leaked.pem");
  await run("ca", "revoke", "leaked.pem");
  // From now on an item fails so often that it mostly waits, longer each time.
  await cluster.coordinator.stop();
  await cluster.configure({ "run.max_attempts": 1_000 });
  await cluster.startCoordinator({ program });
  await submit(gatedItems(14, 17, { cure: "later" }));
  await sleep(systemClock, DELAYED_AFTER_MS);
  await runUntil(cluster, ({ delayed }) => delayed >= 2);
  await run("pause", "--reason", "a backup is made");
  await submit(gatedItems(17, 30, { gate: "later" }));
  const schema = `rollout_${cluster.runId.toLowerCase()}`;
  const dump = execFileSync("pg_dump", [`--schema=${schema}`, "--no-owner", url], { encoding: "utf8" });
  const lacks = WANTED.filter((prefix) => !dump.includes(`\\\\x${Buffer.from(prefix).toString("hex")}`));
  if (lacks.length > 0) throw new Error(`there is nothing under ${lacks.join(", ")}`);
  writeFileSync(join(EARLIER, "run.sql.gz"), gzipSync(dump, { level: 9 }));
  for (const file of ["ca.pem", "ca.key.pem"])
    copyFileSync(cluster.file(`data/tls/${file}`), join(EARLIER, file));
}
