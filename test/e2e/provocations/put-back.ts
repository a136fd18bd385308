// The way to the row of the table of errors that a restored backup leads to.
import { cp, rename, rm } from "node:fs/promises";
import type { Provocation } from "./scene.ts";

export const PUT_BACK: Provocation<"store_rolled_back"> = {
  by: "an older copy of the database that was put back",
  wasLed: true,
  stage: async (cluster) => {
    const [path, older] = [cluster.file("data/rollout.db"), cluster.file("older")];
    await cp(path, older, { recursive: true });
    await (await cluster.startCoordinator()).stop();
    await rm(path, { recursive: true });
    await rename(older, path);
    const args = ["coordinator", "run", "--listen-addr", "127.0.0.1:0"];
    return { args, params: { path, missing: "0 results and 0 items" } };
  },
};
