// Ways to the rows of errors that fleets lead to.
import { readFile, writeFile } from "node:fs/promises";
import type { Provocation } from "./scene.ts";

type FleetCode = "fleet_out_of_reach" | "fleet_unknown" | "fleet_min_over_max" | "fleet_not_ready";

export const FLEET_PROVOCATIONS: { readonly [Code in FleetCode]: Provocation<Code> } = {
  fleet_out_of_reach: {
    by: "hosts by ssh for a coordinator on loopback, without a tunnel",
    stage: async (cluster) => {
      const file = cluster.file("reach.toml");
      const fleet = '[[fleet]]\nname = "lab"\nprovider = "ssh"\nhosts = ["a"]\n';
      await writeFile(file, `${await readFile(cluster.file("rollout.toml"), "utf8")}\n${fleet}`);
      const params = { source: file, fleet: "lab", addresses: cluster.address };
      return { args: ["coordinator", "run", "--config", file], params };
    },
  },
  fleet_unknown: {
    by: "the name of a fleet that the run does not have (a coordinator of ours, made to say so)",
    says: { fleet: "spot", known: "none" },
  },
  fleet_min_over_max: {
    by: "a minimum above the maximum of the file (a coordinator of ours, made to say so)",
    says: { fleet: "spot", min: 5, max: 4 },
  },
  fleet_not_ready: {
    by: "a provider that says no (a coordinator of ours, made to say so)",
    says: { fleet: "spot", reason: "no such image" },
  },
};
