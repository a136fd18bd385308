// Ways to the rows of the table of errors that an operator's question to a coordinator leads to.
import { writeFile } from "node:fs/promises";
import { repositoryFile } from "../../../scripts/generate-docs.ts";
import { commandManifest, commandManifestText, mockManifest } from "../../../src/config/manifest.ts";
import { taskOf } from "../../../src/config/task.ts";
import { itemIdOf } from "../../../src/coordinator/ledger/place.ts";
import { newWorkerId } from "../../support/certificates.ts";
import type { Cluster } from "../../support/cluster.ts";
import type { Provocation } from "./scene.ts";

type OperatorCode =
  | ("run_cancelled" | "other_task" | "item_unknown" | "item_ambiguous" | "name_unknown" | "worker_unknown")
  | ("key_invalid" | "key_unknown" | "key_refused" | "run_not_paused")
  | ("actor_unknown" | "actor_parked" | "actor_ended" | "actor_not_there_yet")
  | ("worker_alive" | "certificate_revoked" | "clock_ahead" | "no_successor");

const SUBMIT = ["submit", "items.jsonl"];
const ORDERS = ["--plugin", repositoryFile("examples/order/order.toml")];
const SEND = ["actor", "send", "order/17", `{"type":"pay"}`, ...ORDERS];
const TWINS = [`{"id":"twin","number":1}`, `{"id":"twin","number":2}`];

/** Times of a worker alone: it waits for some of them whether the one that has its id has died. */
const BRIEF = [
  ...["--heartbeat-interval", "100ms", "--clock-skew-budget", "50ms"],
  ...["--worker-self-fence-timeout", "200ms", "--coordinator-failure-timeout", "400ms"],
];

async function submit(cluster: Cluster, lines: readonly string[], ...more: string[]): Promise<void> {
  await cluster.submit(
    lines.map((line) => JSON.parse(line) as unknown),
    ...more,
  );
}

function idOf(line: string): string {
  const { digest: taskDigest } = taskOf(mockManifest());
  const id = itemIdOf({ taskDigest, payload: Buffer.from(line), key: "", sampleIndex: 0 });
  return Buffer.from(id).toString("hex");
}

export const OPERATOR_PROVOCATIONS: { readonly [Code in OperatorCode]: Provocation<Code> } = {
  run_cancelled: {
    by: "a submission after the run was cancelled",
    stage: async (cluster) => {
      await cluster.startCoordinator();
      await submit(cluster, [`"one"`]);
      await cluster.ask((client) => client.cancel());
      await writeFile(cluster.file("items.jsonl"), `"another"\n`);
      return { args: SUBMIT, params: {} };
    },
  },
  other_task: {
    by: "items for another plugin than the first ones",
    isBesideOthers: true,
    stage: async (cluster) => {
      await submit(cluster, [`"one"`]);
      const command = ["wc", "-w"];
      await writeFile(cluster.file("words.toml"), commandManifestText(command, cluster.directory));
      const [task, other] = [mockManifest(), commandManifest(command, cluster.directory)].map(
        (manifest) => taskOf(manifest).summary,
      );
      if (task === undefined || other === undefined) throw new Error("a task has a summary");
      return { args: [...SUBMIT, "--plugin", "words.toml"], params: { task, other } };
    },
  },
  key_invalid: {
    by: "a line without its key, behind one that has one",
    isBesideOthers: true,
    stage: async (cluster) => {
      await writeFile(cluster.file("items.jsonl"), `{"customer":1}\n{"client":2}\n`);
      const reason = "it has no customer, which is its key";
      const params = { file: "items.jsonl", line: 2, reason };
      return { args: [...SUBMIT, "--key-field", "customer"], params };
    },
  },
  key_unknown: {
    by: "a key that no item has",
    isBesideOthers: true,
    stage: async (cluster) => {
      await submit(cluster, TWINS);
      return { args: ["key", "get", "nobody"], params: { key: "nobody" } };
    },
  },
  key_refused: {
    by: "a key that is to go on without its next item, which has not failed",
    isBesideOthers: true,
    stage: async (cluster) => {
      await submit(cluster, [`{"customer":17}`], "--key-field", "customer");
      const reason = "no failed item has parked it";
      return { args: ["key", "skip", "17"], params: { keys: "17", reason } };
    },
  },
  run_not_paused: {
    by: "an export of keys while the run goes on",
    isBesideOthers: true,
    stage: async () => {
      return { args: ["key", "export"], params: {} };
    },
  },
  actor_unknown: {
    by: "an actor to which nothing was ever sent",
    isBesideOthers: true,
    stage: async () => {
      return { args: ["actor", "get", "order/17"], params: { actor: "order/17" } };
    },
  },
  actor_parked: {
    by: "an actor that is waited for, and whose event fails",
    stage: async (cluster) => {
      await cluster.startCoordinator({ args: ["--max-attempts", "1"] });
      await cluster.startWorker({ args: ORDERS });
      const reason = "error: context.cents is NaN, which JSON cannot hold";
      return {
        args: ["actor", "send", "order/17", `{"type":"add"}`, ...ORDERS, "--wait", "paid"],
        params: { actor: "order/17", reason },
        tellsMore: true,
      };
    },
  },
  actor_ended: {
    by: "an actor that is waited for in a run that is over",
    stage: async (cluster) => {
      await cluster.startCoordinator();
      await cluster.startWorker({ args: ORDERS });
      await cluster.launch([...SEND, "--id", "one"]).ended;
      await cluster.launch(["submit", "--seal", "/dev/null", "--key-field", "order", ...ORDERS]).ended;
      await cluster.launch(["results", "--follow"]).ended;
      const reason = "the run is over, and it is in cart";
      return {
        args: [...SEND, "--id", "one", "--wait", "paid"],
        params: { actor: "order/17", reason },
        tellsMore: true,
      };
    },
  },
  actor_not_there_yet: {
    by: "an actor that is waited for while there is no worker",
    stage: async (cluster) => {
      await cluster.startCoordinator();
      const params = { actor: "order/17", seconds: "1", value: "no state yet" };
      return { args: [...SEND, "--wait", "paid", "--timeout", "1s"], params, tellsMore: true };
    },
  },
  item_unknown: {
    by: "a name that no item has",
    isBesideOthers: true,
    stage: async (cluster) => {
      await submit(cluster, TWINS);
      return { args: ["logs", "abcdef"], params: { name: "abcdef" } };
    },
  },
  item_ambiguous: {
    by: "an id that the input gave to two items",
    isBesideOthers: true,
    stage: async (cluster) => {
      await submit(cluster, TWINS);
      const items = TWINS.map((line) => idOf(line).slice(0, 16)).join(", ");
      return { args: ["logs", "twin"], params: { name: "twin", items } };
    },
  },
  name_unknown: {
    by: "the id of a worker that there never was",
    isBesideOthers: true,
    stage: async () => {
      const name = newWorkerId();
      return { args: ["explain", name], params: { name } };
    },
  },
  worker_unknown: {
    by: "a worker that there never was",
    isBesideOthers: true,
    stage: async () => {
      const worker = newWorkerId();
      return { args: ["worker", "drain", worker], params: { worker } };
    },
  },
  no_successor: {
    by: "a step-down of the only coordinator",
    isBesideOthers: true,
    stage: async () => {
      return { args: ["coordinator", "step-down"], params: {} };
    },
  },
  worker_alive: {
    by: "the id of a worker that lives, asked for with the bundle and another state directory",
    stage: async (cluster) => {
      await cluster.startCoordinator();
      const workerId = newWorkerId();
      await cluster.startWorker({ workerId });
      const args = ["worker", "run", "--worker-id", workerId, "--state-dir", "elsewhere", ...BRIEF];
      return { args, params: { worker: workerId } };
    },
  },
  certificate_revoked: {
    by: "a worker whose id was revoked",
    isBesideOthers: true,
    stage: async (cluster) => {
      const workerId = newWorkerId();
      await cluster.launch(["ca", "revoke", workerId]).ended;
      return { args: ["worker", "run", "--worker-id", workerId], params: { who: `worker ${workerId}` } };
    },
  },
  clock_ahead: {
    by: "a worker whose clock is two days ahead (a preload)",
    isBesideOthers: true,
    stage: async (cluster) => {
      const file = cluster.file("ahead.mjs");
      await writeFile(file, "const now = Date.now; Date.now = () => now() + 2 * 86_400_000;");
      return { args: ["worker", "run"], env: { NODE_OPTIONS: `--import ${file}` }, params: {} };
    },
  },
};
