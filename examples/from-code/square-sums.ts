// Work submitted from a program, results taken as they finish: a cluster of two workers on this machine, a function of one's own
// as the backend, a hundred items, and no file in between. `node examples/from-code/square-sums.ts`
import { fileURLToPath } from "node:url";
import { startCluster } from "rollout";

const plugin = fileURLToPath(new URL("squares.toml", import.meta.url));

// `await using` stops workers and coordinator at the end of the scope, whatever happens in it.
await using cluster = await startCluster({ plugin, workers: 2, slots: 2 });
const { client } = cluster;

const items = Array.from({ length: 100 }, (_, n) => ({ id: `n-${n}`, n }));
const { added } = await client.submit(items, { seal: true });
console.log(`${added} items submitted`);

let sum = 0;
let finished = 0;
for await (const { id, ok, output, error } of client.results({ follow: true })) {
  if (!ok) console.error(`${id ?? "?"} failed: ${error?.message ?? ""}`);
  else sum += Number(Buffer.from(output).toString());
  if (++finished % 25 === 0) console.log(`${finished} finished, the sum of squares so far is ${sum}`);
}

const { state, done, failed } = await client.status();
console.log(`the run is ${state}: ${done} done, ${failed} failed, ${sum} in all`);
