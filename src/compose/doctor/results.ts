// The files of a local run's results, read as a whole and compared with what was written to them.
import { dirname, join } from "node:path";
import { failure } from "../../base/errors.ts";
import { compareWithCursorFile } from "../../cli/results/cursor-file.ts";
import { CURSOR_FILE } from "../local-run/recorded.ts";
import type { Finding } from "./finding.ts";
import { good, warning } from "./finding.ts";

/** `configFile` is of the run; where it is no local run with such files there is no finding. */
export async function examineResults(configFile: string): Promise<readonly Finding[]> {
  const compared = await compareWithCursorFile(join(dirname(configFile), CURSOR_FILE));
  return (compared?.files ?? []).map(({ file, state }): Finding => {
    const subject = "results";
    switch (state) {
      case "as-written":
        return good(subject, `${file}: as it was written`);
      case "gone":
        return warning(
          subject,
          `${file} is not there any more`,
          "give the same command again: it is written anew",
        );
      case "unknown":
        return warning(
          subject,
          `${file}: nobody can say whether it is as it was written`,
          "compare it yourself",
        );
      case "changed": {
        const reason = "it has other bytes than what was written to it";
        const advice = `restore it, or remove ${file} and give the same command again: nothing is run again`;
        const error = failure("output_not_continued", { file, reason, advice });
        return { subject, verdict: "failure", detail: error.message, error };
      }
    }
  });
}
