// A program that uses the library: a cluster of two workers with a long item on each, and nothing that would ever end it.
import { startCluster } from "rollout";

const cluster = await startCluster({ command: ["sleep", "600"], workers: 2 });
await cluster.client.submit([1, 2, 3], { seal: true });
for (;;) {
  const { executing } = await cluster.client.status();
  if (executing === 2) break;
  await new Promise((resolve) => setTimeout(resolve, 20));
}
console.log("busy");
for await (const result of cluster.client.results({ follow: true })) console.log(result.item);
