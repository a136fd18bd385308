// Writes made-up results into files that grow, page by page, until it is killed or done: for tests that kill it. Arguments:
// the output, the errors file, the format, how many results, how many a page.
import { openResultSink } from "../../../../src/cli/results/result-sink.ts";
import type { FormatName } from "../../../../src/cli/results/format.ts";
import { madePages } from "../../../support/made-results.ts";

const [output = "", errors = "", format = "", count = "", size = ""] = process.argv.slice(2);
const sink = await openResultSink({
  output,
  errors,
  format: format as FormatName,
  mode: "grow",
  runId: "a run",
  order: "completion",
});
process.stdout.write("begun\n");
for (const page of madePages(Number(count), Number(size), sink.cursor)) await sink.write(page);
await sink.close();
