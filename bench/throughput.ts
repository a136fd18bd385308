// Items per second through the whole product: submit, dispatch, execute a no-op, result on disk.
import type { Bench, Figure } from "./support/figure.ts";
import { round } from "./support/figure.ts";
import { measureRun } from "./support/measured-run.ts";

const SIZES = [10_000, 100_000] as const;
const SHAPE = { workers: 2, slots: 256, payloadBytes: 100 };

export const throughput: Bench = {
  name: "throughput",
  async run(note) {
    const figures: Figure[] = [];
    for (const items of SIZES) {
      const measured = await measureRun({ items, ...SHAPE });
      note(`${items} items: ${JSON.stringify(measured)}`);
      const name = `${items} items, ${SHAPE.workers} workers`;
      figures.push(
        { name: `${name}: submitted`, value: round(measured.submitPerSecond), unit: "1/s" },
        { name: `${name}: executed and recorded`, value: round(measured.executePerSecond), unit: "1/s" },
        { name: `${name}: end to end`, value: round(measured.endToEndPerSecond), unit: "1/s" },
        {
          name: `${name}: resident memory of the coordinator`,
          value: round(measured.lag.rss_bytes / 2 ** 20),
          unit: "MiB",
        },
      );
    }
    return figures;
  },
};
