// From a run into a sink, to the end or as far as there is something. `rollout results` and `rollout run` are built on it.
import type { ResultPage } from "../../client/results.ts";
import type { ResultSink } from "./result-sink.ts";

/** Why it stopped: the run is over, there is nothing more for now (when it does not follow), or nobody reads. */
export type Pumped = "end" | "caught-up" | "reader-gone";

/**
 * Goes on where the sink is. The sink is closed, or abandoned when this throws: what `pagesAfter` throws, output_unwritten,
 * file_unwritable. Called again with a new sink on the same target it goes on.
 */
export async function followResults(
  pagesAfter: (cursor: string) => AsyncIterable<ResultPage>,
  sink: ResultSink,
): Promise<Pumped> {
  try {
    let outcome: Pumped = "caught-up";
    for await (const page of pagesAfter(sink.cursor)) {
      if (page.end) outcome = "end";
      if ((await sink.write(page)) === "reader-gone") {
        outcome = "reader-gone";
        break;
      }
    }
    await sink.close();
    return outcome;
  } catch (error) {
    await sink.abandon();
    throw error;
  }
}
