// Real uses of rollout, each beside the plain program that does the same work without it, on this machine in one run. Figures are rates and ratios; each take goes to `note`.
import type { Bench, Figure } from "./support/figure.ts";
import { throughChildren } from "./real-use-children.ts";
import { shortCommands } from "./real-use-commands.ts";

type Part = (note: (line: string) => void) => Promise<readonly Figure[]>;

const PARTS: readonly Part[] = [throughChildren, shortCommands];

export const realUse: Bench = {
  name: "real-use",
  async run(note) {
    const figures: Figure[] = [];
    for (const part of PARTS) figures.push(...(await part(note)));
    return figures;
  },
};
