// For every row of the table of errors, a way to it through the command line. Each prepares a cluster of real processes; where
// only another coordinator or a failing operating system would lead to the row, that is what stands in, and `by` says so.
import { chmod, cp, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { authorityRecord } from "../../../src/coordinator/lead/authority-record.ts";
import { authorityFingerprint } from "../../../src/transport/tls/authority.ts";
import { failure } from "../../../src/base/errors.ts";
import type { ErrorCode } from "../../../src/base/errors.ts";
import { formatDuration } from "../../../src/config/duration.ts";
import { decodeRecord, encodeRecord, okOrFailure } from "../../../src/storage/codec.ts";
import { AUTHORITY_KEY, STORE_IDENTITY_KEY } from "../../../src/storage/keys.ts";
import { describeHolder, readHolder } from "../../../src/storage/level/holder-file.ts";
import { openLevelStore } from "../../../src/storage/level/level-store.ts";
import { storeIdentityRecord } from "../../../src/storage/store-identity.ts";
import { newIdentity, newRunId, newWorkerId } from "../../support/certificates.ts";
import type { Cluster } from "../../support/cluster.ts";
import { startFakeCoordinator } from "./fake-coordinator.ts";
import { withOperator } from "./operator-files.ts";
import { FLEET_PROVOCATIONS } from "./fleet-provocations.ts";
import { KEY_PROVOCATIONS } from "./key-provocations.ts";
import { damageRow } from "../../support/damaged-copy.ts";
import { startDeafListener, restartableAddress } from "../../support/listeners.ts";
import { authorityIn, writeCredentials } from "../../support/real-authority.ts";
import { MACHINE_PROVOCATIONS } from "./machine-provocations.ts";
import { OPERATOR_PROVOCATIONS } from "./operator-provocations.ts";
import { RELEASE_PROVOCATIONS } from "./release-provocations.ts";
import { PUT_BACK } from "./put-back.ts";
import { RUN_PROVOCATIONS } from "./run-provocations.ts";
import type { Provocation } from "./scene.ts";

export type { Provocation, Scene, StagedProvocation } from "./scene.ts";

const LIST = ["worker", "list"];
const WORKER = ["worker", "run", "--coordinator-addr", "127.0.0.1:1"];
const COORDINATOR = ["coordinator", "run", "--listen-addr", "127.0.0.1:0"];
const DATABASE = "data/rollout.db";
const OTHER_BYTES = "the checksum does not match";
const START_FIRST =
  "start the coordinator, which makes it on its own machine, or name your files by --cert-file";

/** A module that every Node of the scene loads first. */
async function preload(cluster: Cluster, source: string): Promise<Record<string, string>> {
  const file = cluster.file("preload.mjs");
  await writeFile(file, source);
  return { NODE_OPTIONS: `--import ${file}` };
}

export const PROVOCATIONS: { readonly [Code in ErrorCode]: Provocation<Code> } = {
  usage: {
    by: "a command that does not exist",
    stage: async () => {
      const detail = "there is no command worker lst, did you mean `rollout worker list`?";
      return { args: ["worker", "lst"], params: { detail, command: "rollout" } };
    },
  },
  node_too_old: {
    by: "a Node that says that it is 20.20.2 (a preload)",
    stage: async (cluster) => {
      const versions = `{ value: { ...process.versions, node: "20.20.2" } }`;
      const env = await preload(cluster, `Object.defineProperty(process, "versions", ${versions});`);
      return { args: ["init"], env, params: { needed: "22.18", found: "20.20.2" } };
    },
  },
  config_unreadable: {
    by: "a file that does not exist",
    stage: async (cluster) => ({
      args: [...LIST, "--config", "nowhere.toml"],
      params: { file: cluster.file("nowhere.toml"), reason: "it does not exist" },
    }),
  },
  not_trusted: {
    by: "a configuration that everybody may write to",
    stage: async (cluster) => {
      const path = cluster.file("rollout.toml");
      await chmod(path, 0o666);
      const reason = "others than its owner may write to it (mode 666)";
      return { args: LIST, params: { path, reason, advice: `run \`chmod go-w ${path}\` as its owner` } };
    },
  },
  config_syntax: {
    by: "a line that is not TOML",
    stage: async (cluster) => {
      const file = cluster.file("bad.toml");
      await writeFile(file, `run_id = "${cluster.runId}"\nslots 3\n`);
      const reason = "illegal character in key";
      return { args: [...LIST, "--config", "bad.toml"], params: { file, line: 2, column: 7, reason } };
    },
  },
  config_unknown_key: {
    by: "a mistyped key",
    stage: async (cluster) => {
      const file = cluster.file("typo.toml");
      await writeFile(file, `run_id = "${cluster.runId}"\n[worker]\nslotz = 3\n`);
      const params = { source: `${file}:3`, key: "worker.slotz", suggestion: "did you mean worker.slots?" };
      return { args: [...LIST, "--config", "typo.toml"], params };
    },
  },
  config_missing_key: {
    by: "a coordinator without a database",
    stage: async (cluster) => {
      const source = cluster.file("less.toml");
      await writeFile(source, `run_id = "${cluster.runId}"\n`);
      const args = ["coordinator", "run", "--config", "less.toml"];
      return { args, params: { source, key: "storage.path", allowed: "a path" } };
    },
  },
  config_invalid_value: {
    by: "an interval of a millisecond",
    stage: async () => {
      const name = "ROLLOUT_LIVENESS_HEARTBEAT_INTERVAL";
      const source = `environment variable ${name}`;
      const allowed = `a duration from "50ms" to "1m", such as "500ms"`;
      const params = { source, key: "liveness.heartbeat_interval", value: `"1ms"`, allowed };
      return { args: COORDINATOR, env: { [name]: "1ms" }, params };
    },
  },
  config_contradiction: {
    by: "a worker that would stop after its work was given away",
    stage: async (cluster) => ({
      args: [...COORDINATOR, "--worker-self-fence-timeout", "1h"],
      params: {
        source: "flag --worker-self-fence-timeout",
        key: "liveness.worker_self_fence_timeout",
        value: "1h",
        otherKey: "liveness.coordinator_failure_timeout",
        otherValue: formatDuration(cluster.durationMs("liveness.coordinator_failure_timeout")),
        rule: "worker_self_fence_timeout must be less than coordinator_failure_timeout: a worker stops before its work is given away",
      },
    }),
  },
  manifest_unreadable: {
    by: "a manifest that does not exist",
    stage: async (cluster) => {
      const file = cluster.file("infer.toml");
      const args = [...WORKER, "--plugin", "infer.toml"];
      return { args, params: { file, reason: "it does not exist" } };
    },
  },
  backend_broken: {
    by: "a plugin whose module throws when it is loaded",
    isBesideOthers: true,
    stage: async (cluster) => {
      const module = cluster.file("broken.js");
      await writeFile(module, `throw new Error("no model today");\n`);
      const text = `name = "infer"\nversion = "1"\nbackend = "module"\n[module]\nmodule = "broken.js"\n`;
      await writeFile(cluster.file("infer.toml"), text);
      const reason = `${module}: no model today`;
      return { args: ["worker", "run", "--plugin", "infer.toml"], params: { plugin: "infer", reason } };
    },
  },
  plugin_repeated: {
    by: "two manifests of one name and version",
    stage: async (cluster) => {
      const text = `name = "echo"\nversion = "1"\nbackend = "mock"\n`;
      for (const name of ["one.toml", "two.toml"]) await writeFile(cluster.file(name), text);
      const args = [...WORKER, "--plugin", "one.toml", "--plugin", "two.toml"];
      const [other, file] = [cluster.file("one.toml"), cluster.file("two.toml")];
      return { args, params: { file, name: "echo", version: "1", other } };
    },
  },
  input_unreadable: {
    by: "a file of items that does not exist",
    isBesideOthers: true,
    stage: async () => {
      return {
        args: ["submit", "nowhere.jsonl"],
        params: { file: "nowhere.jsonl", reason: "it does not exist" },
      };
    },
  },
  input_invalid: {
    by: "a line that is not JSON",
    isBesideOthers: true,
    stage: async (cluster) => {
      await writeFile(cluster.file("items.jsonl"), `"one"\n{\n`);
      const params = { file: "items.jsonl", line: 2, reason: "it is not JSON at column 2" };
      return { args: ["submit", "items.jsonl"], params };
    },
  },

  ...MACHINE_PROVOCATIONS,
  ...RUN_PROVOCATIONS,
  ...OPERATOR_PROVOCATIONS,
  ...KEY_PROVOCATIONS,
  ...RELEASE_PROVOCATIONS,
  ...FLEET_PROVOCATIONS,
  store_rolled_back: PUT_BACK,

  store_held: {
    by: "a second coordinator on one database",
    isBesideOthers: true,
    stage: async (cluster) => {
      const path = cluster.file(DATABASE);
      const holder = await readHolder(path);
      return { args: COORDINATOR, params: { path, holder: holder ? describeHolder(holder) : "nobody" } };
    },
  },
  too_few_files: {
    by: "a limit of 32 open files, which is enough for this program to start and for nothing more",
    stage: async () => ({
      args: [...WORKER, "--slots", "2"],
      wrapper: ["sh", "-c", 'ulimit -n 32; exec "$@"', "sh"],
      params: { who: "a worker of 2 slots", needed: 48, limit: 32 },
    }),
  },
  store_unusable: {
    by: "a database that is a file",
    stage: async (cluster) => ({
      args: [...COORDINATOR, "--storage-path", "rollout.toml"],
      params: {
        path: cluster.file("rollout.toml"),
        reason: "it is a file, not a directory",
        advice: "use the path of a directory, or of nothing yet",
      },
    }),
  },
  store_unreachable: {
    by: "a Postgres where nothing listens",
    stage: async (cluster) => {
      const host = await restartableAddress();
      const url = `postgres://nobody@${host}/work`;
      await cluster.configure({ "storage.path": undefined, "storage.url": url });
      const path = `${url} (schema rollout_${cluster.runId.toLowerCase()})`;
      const reason = `${host}: connect ECONNREFUSED ${host}`;
      return { args: ["doctor", "--quarantine", "done/nothing"], params: { path, reason } };
    },
  },
  store_corrupt: {
    by: "a row with another last byte",
    wasLed: true,
    stage: async (cluster) => {
      const path = cluster.file(DATABASE);
      const key = await damageRow(path, { from: STORE_IDENTITY_KEY, to: `${STORE_IDENTITY_KEY}~` });
      return { args: COORDINATOR, params: { path, key, reason: OTHER_BYTES } };
    },
  },
  store_broken: {
    by: "a database that has lost its file CURRENT",
    wasLed: true,
    stage: async (cluster) => {
      const path = cluster.file(DATABASE);
      await rm(`${path}/CURRENT`);
      return { args: COORDINATOR, params: { path, key: "its file CURRENT", reason: "it is missing" } };
    },
  },
  worker_store_corrupt: {
    by: "a worker's own database that has lost its file CURRENT",
    stage: async (cluster) => {
      await cluster.startCoordinator();
      const worker = await cluster.startWorker();
      const path = cluster.file(`data/state/workers/${await worker.id()}`);
      await worker.stop();
      await rm(`${path}/CURRENT`);
      return { args: ["worker", "run"], params: { path, key: "its file CURRENT", reason: "it is missing" } };
    },
  },
  store_lost: {
    by: "a directory of a local run for which a worker has worked, without its database",
    stage: async (cluster) => {
      const directory = cluster.file("data");
      await mkdir(join(directory, "state", "workers", newWorkerId()), { recursive: true });
      await writeFile(join(directory, "task.json"), "{}");
      const [state, known] = ["is gone", "1 worker has worked for it"];
      return { args: COORDINATOR, params: { path: cluster.file(DATABASE), state, known, files: "data" } };
    },
  },
  quarantine_refused: {
    by: "a row that is not there",
    wasLed: true,
    stage: async () => {
      const params = { key: "done/nothing", reason: "there is no such row" };
      return { args: ["doctor", "--quarantine", "done/nothing"], params };
    },
  },
  store_write_failed: {
    by: "a limit on the size of files, at which the operating system refuses to write",
    stage: async (cluster) => {
      await withOperator(cluster);
      const path = cluster.file("small.db");
      return {
        // Each time a fresh database: both start from nothing and fill up with the heartbeats of a worker.
        args: [...COORDINATOR, "--storage-path", "small.db"],
        wrapper: ["sh", "-c", 'rm -rf small.db; ulimit -f 8; exec "$@"', "sh"],
        params: { path, reason: `IO error: ${path}/000003.log: File too large` },
        meanwhile: async (coordinator) => {
          const { address } = await coordinator.event("coordinator_leading");
          const worker = cluster.launchWorker({ args: ["--coordinator-addr", address] });
          await coordinator.ended;
          await worker.kill();
        },
      };
    },
  },
  store_newer: {
    by: "a database whose format is one higher",
    wasLed: true,
    stage: async (cluster) => {
      const [path, key] = [cluster.file(DATABASE), STORE_IDENTITY_KEY];
      const store = await openLevelStore({ path, holderName: "a newer rollout", clock: systemClock });
      const bytes = (await store.get(key)) ?? new Uint8Array();
      const identity = okOrFailure(path, decodeRecord(storeIdentityRecord, key, bytes));
      const [known, found] = [identity.formatVersion, identity.formatVersion + 1];
      const value = encodeRecord(storeIdentityRecord, key, { ...identity, formatVersion: found });
      await store.commit({ puts: [{ key, value }], deletes: [], expect: [], durability: "sync" });
      await store.close();
      return { args: COORDINATOR, params: { path, key, found, known } };
    },
  },
  store_other_run: {
    by: "a changed run_id",
    wasLed: true,
    stage: async (cluster) => {
      const [path, expected] = [cluster.file(DATABASE), newRunId()];
      return {
        args: [...COORDINATOR, "--run-id", expected],
        params: { path, found: cluster.runId, expected },
      };
    },
  },

  listen_failed: {
    by: "an address that is taken",
    isBesideOthers: true,
    stage: async (cluster) => {
      const { address } = cluster;
      const args = ["coordinator", "run", "--storage-path", "other.db"];
      return { args, params: { address, reason: "the address is in use", setting: "transport.listen_addr" } };
    },
  },
  coordinator_name_not_found: {
    by: "a name that nobody has",
    stage: async (cluster) => {
      await withOperator(cluster);
      const address = "coordinator.invalid:50051";
      return { args: [...LIST, "--coordinator-addr", address], params: { address } };
    },
  },
  coordinator_refused_connection: {
    by: "an address where nothing listens",
    stage: async (cluster) => {
      await withOperator(cluster);
      return { args: LIST, params: { address: cluster.address } };
    },
  },
  coordinator_silent: {
    by: "a listener that hangs up",
    stage: async (cluster) => {
      await withOperator(cluster);
      const listener = await startDeafListener();
      const { address } = listener;
      return {
        args: [...LIST, "--coordinator-addr", address],
        params: { address },
        after: () => listener.close(),
      };
    },
  },
  not_leader: {
    by: "a coordinator that follows (one of ours, made to say so)",
    says: { address: "unknown", epoch: "unknown", retry_after_ms: 60_000 },
  },
  no_leader_found: {
    by: "two addresses, of which one is nobody's and one a coordinator's that follows (one of ours, made to say so)",
    stage: async (cluster) => {
      await withOperator(cluster);
      const hint = { address: "unknown", epoch: "unknown", retry_after_ms: 60_000 };
      const server = await startFakeCoordinator(cluster, () => failure("not_leader", hint));
      const { address } = server;
      const nobody = await restartableAddress();
      return {
        args: [...LIST, "--coordinator-addr", nobody, "--coordinator-addr", address],
        params: { said: `nothing listens at ${nobody}; ${address} follows and knows no leader` },
        after: () => server.close(0),
      };
    },
  },
  certificate_refused: {
    by: "a certificate of another CA",
    isBesideOthers: true,
    stage: async (cluster) => {
      const [ours, other] = await Promise.all(
        ["data/tls", "other"].map((at) => authorityIn(cluster.file(at))),
      );
      const identity = newIdentity(cluster.runId, "operator");
      const caPem = ours?.certificatePem ?? "";
      const credentials = await other?.issue({ identity });
      if (credentials === undefined) throw new Error("no other CA");
      const flags = await writeCredentials(cluster.file("mine"), { ...credentials, caPem });
      const params = { address: cluster.address, subject: `operator ${identity.id}` };
      return { args: [...LIST, ...flags], params };
    },
  },
  coordinator_not_trusted: {
    by: "a coordinator of another CA",
    isBesideOthers: true,
    stage: async (cluster) => {
      const other = await authorityIn(cluster.file("other"));
      const credentials = await other.issue({ identity: newIdentity(cluster.runId, "operator") });
      const reason = "it was not signed by this run's CA (SELF_SIGNED_CERT_IN_CHAIN)";
      const flags = await writeCredentials(cluster.file("mine"), credentials);
      return { args: [...LIST, ...flags], params: { address: cluster.address, reason, ca: "CA" } };
    },
  },
  permission_denied: {
    by: "a coordinator whose access table has no operators (one of ours, with another table)",
    stage: async (cluster) => {
      await withOperator(cluster);
      const server = await startFakeCoordinator(cluster);
      const identity = newIdentity(cluster.runId, "operator");
      const authority = await authorityIn(cluster.file("data/tls"));
      const flags = await writeCredentials(cluster.file("mine"), await authority.issue({ identity }));
      return {
        args: [...LIST, ...flags, "--coordinator-addr", server.address],
        params: { who: `operator ${identity.id}`, method: "rollout.v1.OperatorService/ListWorkers" },
        after: () => server.close(0),
      };
    },
  },
  enrolment_refused: {
    by: "a coordinator that makes no certificates",
    stage: async (cluster) => {
      await cluster.startCoordinator();
      await cluster.run("ca", "issue", "--out", "enrolment.pem");
      await cluster.coordinator.stop();
      const authority = await authorityIn(cluster.file("data/tls"));
      const credentials = await authority.issue({ identity: newIdentity(cluster.runId, "coordinator") });
      await cluster.startCoordinator({ args: await writeCredentials(cluster.file("own"), credentials) });
      const reason = "the certificates of this run are not made by its coordinator";
      const args = ["worker", "run", "--enrolment", "enrolment.pem"];
      return { args, params: { address: cluster.address, reason } };
    },
  },
  request_invalid: {
    by: "a coordinator that does not understand (one of ours, made to say so)",
    says: { method: "ListWorkers", reason: "it knows no such field" },
  },
  run_sealed: {
    by: "a submission after the run was sealed",
    stage: async (cluster) => {
      await cluster.startCoordinator();
      await writeFile(cluster.file("items.jsonl"), `"one"\n`);
      const args = ["submit", "items.jsonl"];
      await cluster.launch([...args, "--seal"]).ended;
      await writeFile(cluster.file("items.jsonl"), `"another"\n`);
      return { args, params: {} };
    },
  },
  overloaded: {
    by: "a coordinator at its limit (one of ours, made to say so)",
    says: { what: "the inbox", limit: 20_000 },
  },
  worker_superseded: {
    by: "a second process with a copy of the worker's state",
    stage: async (cluster) => {
      await cluster.startCoordinator();
      const workerId = newWorkerId();
      await (await cluster.startWorker({ workerId })).stop();
      await cp(cluster.file("data/state"), cluster.file("copy"), { recursive: true });
      return {
        args: ["worker", "run", "--worker-id", workerId],
        params: { worker: workerId },
        meanwhile: async (older) => {
          // The one before it has Ready beats too: the next is its own.
          await cluster.coordinator.nextEvent("worker_heartbeat", { worker_id: workerId, state: "Ready" });
          const newer = cluster.launchWorker({ workerId, args: ["--state-dir", "copy"] });
          await older.ended;
          await newer.stop();
        },
      };
    },
  },

  tls_file_unreadable: {
    by: "a command before the coordinator's first start",
    stage: async (cluster) => {
      await cluster.configure({ "worker.coordinator_addr": await restartableAddress() });
      const file = cluster.file("data/tls/ca.pem");
      const reason = "there is no such file";
      return { args: LIST, params: { what: "the CA's certificate", file, reason, advice: START_FIRST } };
    },
  },
  tls_file_invalid: {
    by: "a certificate that is none",
    stage: async (cluster) => {
      await withOperator(cluster);
      const file = cluster.file("data/tls/operator.pem");
      await writeFile(file, "nothing\n");
      const reason = "it is not a certificate";
      return { args: LIST, params: { what: "the certificate", file, reason, advice: START_FIRST } };
    },
  },
  tls_key_exposed: {
    by: "a key that everybody may read",
    stage: async (cluster) => {
      await withOperator(cluster);
      const file = cluster.file("data/tls/operator.key.pem");
      await chmod(file, 0o644);
      return { args: LIST, params: { file, mode: "644" } };
    },
  },

  other_authority: {
    by: "a database of coordinators with another CA",
    wasLed: true,
    stage: async (cluster) => {
      const fingerprint = "0".repeat(64);
      const [path, key] = [cluster.file(DATABASE), AUTHORITY_KEY];
      const store = await openLevelStore({ path, holderName: "another coordinator", clock: systemClock });
      const value = encodeRecord(authorityRecord, key, { fingerprint });
      await store.commit({ puts: [{ key, value }], deletes: [], expect: [], durability: "sync" });
      await store.close();
      const directory = cluster.file("data/tls");
      const found = `the CA in ${directory} is ${(await authorityFingerprint(directory)) ?? ""}`;
      return { args: COORDINATOR, params: { found, fingerprint, directory } };
    },
  },
  interrupted: {
    by: "Ctrl-C while nobody answers",
    stage: async (cluster) => {
      await withOperator(cluster);
      const listener = await startDeafListener("silent");
      let met = 0;
      return {
        args: [...LIST, "--coordinator-addr", listener.address],
        params: {},
        meanwhile: async (command) => {
          await listener.connections(++met);
          command.send("SIGINT");
        },
        after: () => listener.close(),
      };
    },
  },
  file_unwritable: {
    by: "a directory that is a file",
    stage: async (cluster) => {
      const file = cluster.file("rollout.toml/below/rollout.toml");
      const reason = "a part of the path is not a directory";
      return { args: ["init", "--dir", "rollout.toml/below"], params: { file, reason } };
    },
  },
  output_unwritten: {
    by: "a device that is always full",
    isBesideOthers: true,
    stage: async () => {
      const args = ["results", "--format", "csv", "-o", "/dev/full"];
      return { args, params: { file: "/dev/full", reason: "no space left on the disk" } };
    },
  },
  output_not_continued: {
    by: "a file of somebody else's that is to grow",
    isBesideOthers: true,
    stage: async (cluster) => {
      await writeFile(cluster.file("notes.txt"), "not yours");
      const reason = "it has lines that this run did not write";
      const args = ["results", "--follow", "-o", "notes.txt"];
      const advice = "choose another file with -o, or move notes.txt away";
      return { args, params: { file: "notes.txt", reason, advice } };
    },
  },
  internal: {
    by: "an operating system that throws what nobody expects (a preload)",
    stage: async (cluster) => {
      const source = [
        `import os from "node:os";`,
        `import { syncBuiltinESMExports } from "node:module";`,
        `os.hostname = () => { throw new TypeError("this machine has no name"); };`,
        `syncBuiltinESMExports();`,
      ];
      const env = await preload(cluster, source.join("\n"));
      return { args: COORDINATOR, env, params: { detail: "TypeError: this machine has no name" } };
    },
  },
};
