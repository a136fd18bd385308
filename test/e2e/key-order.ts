// A run with keys, looked at from outside when it is over: the order in which items of a key were begun, by the executions' own journal, and
// the states, which count the items of their keys that have succeeded.
import { writeFileSync } from "node:fs";
import { expect } from "chai";
import type { Cluster } from "../support/cluster.ts";
import { readJournal } from "../support/run-observer.ts";

/** Says with its result which item of its key it was, and counts it. One with a gate ends when there is a file of that name. */
const COUNT = `
import { appendFileSync, existsSync } from "node:fs";
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export default async ({ k, n, gate }, { itemId, attempt, state = 0, withState, env }) => {
  appendFileSync("journal", [itemId, attempt, env.ROLLOUT_WORKER_ID, process.pid].join(" ") + "\\n");
  await pause(20);
  while (gate !== undefined && !existsSync(gate)) await pause(20);
  return withState({ k, n }, state + 1);
};
`;
export const COUNTING_MANIFEST = "count.toml";
const MANIFEST = `name = "count"
version = "1"
backend = "module"
[module]
module = "count.mjs"
`;

/** The plugin of items that are counted. */
export function writeCounting(cluster: Cluster): void {
  writeFileSync(cluster.file("count.mjs"), COUNT);
  writeFileSync(cluster.file(COUNTING_MANIFEST), MANIFEST);
}

/** An item: the nth of all, of a key. */
interface KeyedValue {
  readonly k: number;
  readonly n: number;
}

interface ResultLine {
  readonly item: string;
  readonly ok: boolean;
  readonly output: KeyedValue;
}

/** Each key's items were begun in order, one after the other, and its state has counted each once. */
export async function expectKeysInOrder(cluster: Cluster, values: readonly KeyedValue[]): Promise<void> {
  const { code, stdout, stderr } = await cluster.run("results", "--order", "input");
  expect(code, stderr).to.equal(0);
  const results = stdout
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as ResultLine);
  const executions = readJournal(cluster.file("journal")).map(({ item }) => item);
  for (const [key, ofKey] of Map.groupBy(values, ({ k }) => k)) {
    const inOrder = ofKey.map(({ n }) => n);
    expect(begun(executions, results, key), `key ${key} as it was executed`).to.deep.equal(inOrder);
    const state = await cluster.run("key", "get", String(key), "--state");
    expect(state.stdout.trimEnd(), `items of key ${key} that its state has counted`).to.equal(
      String(inOrder.length),
    );
  }
}

/** Numbers of a key's items as they were begun, one after the other; the same again is another attempt of it. */
function begun(executions: readonly string[], results: readonly ResultLine[], key: number): number[] {
  const numbers = new Map(results.map(({ item, output }) => [item, output]));
  const ofKey = executions.flatMap((item) => {
    const output = numbers.get(item);
    return output?.k === key ? [output.n] : [];
  });
  return ofKey.filter((number, at) => number !== ofKey[at - 1]);
}
