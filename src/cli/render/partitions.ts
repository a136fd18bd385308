// Partitions of keys for a terminal.
import type { Partition } from "../../client/keys.ts";
import type { HintedLine } from "../shell-words.ts";
import { renderAge } from "./quantities.ts";
import { renderTable } from "./table.ts";

/** The table, or a sentence when the run has no keys. */
export function partitionsText(partitions: readonly Partition[], line: HintedLine): string {
  if (partitions.length === 0)
    return `No partitions yet: the first items with keys make them (\`${line("submit")}\` with --key-field).\n`;
  return renderTable<Partition>(
    [
      { title: "partition", value: ({ partition }) => String(partition), align: "right" },
      { title: "worker", value: ({ worker }) => worker ?? "-" },
      { title: "keys", value: ({ keys }) => String(keys), align: "right" },
      { title: "waiting", value: ({ waiting }) => String(waiting), align: "right" },
      { title: "parked", value: ({ parked }) => String(parked), align: "right" },
      {
        title: "checkpoint",
        value: ({ checkpointAgeMs }) => (checkpointAgeMs === undefined ? "-" : renderAge(checkpointAgeMs)),
        align: "right",
      },
    ],
    partitions,
  );
}
