// Ways to the rows of the table of errors that only `rollout machines` leads to.
import { writeFile } from "node:fs/promises";
import type { Provocation } from "./scene.ts";

export const MACHINE_PROVOCATIONS: { readonly machine_unusable: Provocation<"machine_unusable"> } = {
  machine_unusable: {
    by: "a file that exports no machine",
    stage: async (cluster) => {
      const file = cluster.file("none.mjs");
      await writeFile(file, "export const a = 1, b = {};\n");
      const advice = "export a machine of XState 5, and name it as FILE#EXPORT where there are several";
      const reason = "it exports no machine, only a, b";
      return { args: ["machines", "export", "--plugin", "none.mjs"], params: { file, reason, advice } };
    },
  },
};
