import { expect } from "chai";
import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/base/clock.ts";
import type { EventPayloads } from "../../src/observe/events.ts";
import { useClosers } from "../support/closers.ts";
import { paced } from "../support/pace.ts";
import { RolloutProcess } from "../support/rollout-process.ts";
import type { Ending } from "../support/rollout-process.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";

const OWN_BINARY = fileURLToPath(new URL("../../bin/rollout-coordinator.js", import.meta.url));
/** As much as the machine allows: a dump would be left in the directory. */
const WITH_CORE_DUMPS = ["sh", "-c", 'ulimit -c "$(ulimit -H -c)"; exec "$@"', "sh"];

/** The defaults. A leader that gets no turn for as long as these is fenced by its watchdog before it has got anywhere. */
const TIMES = {
  ROLLOUT_COORDINATOR_HEARTBEAT_INTERVAL: "1s",
  ROLLOUT_COORDINATOR_FAILOVER_THRESHOLD: "5s",
};

interface Drill {
  /** From when it knew that another one leads. */
  readonly tookMs: number;
  readonly ending: Ending;
  readonly fenced: readonly EventPayloads["coordinator_fenced"][];
  readonly lastTopic: string | undefined;
}

describe("a fenced coordinator", () => {
  const closeLater = useClosers();
  const directory = useTemporaryDirectory();

  async function drill(args: readonly string[], program?: string): Promise<Drill> {
    const options = {
      cwd: directory.path,
      wrapper: WITH_CORE_DUMPS,
      env: paced(TIMES),
      ...(program !== undefined && { program }),
    };
    const started = new RolloutProcess(args, options);
    closeLater(() => started.kill());
    await started.until("the other epoch", () =>
      started.stderr.find((line) => line.includes("leads no more")),
    );
    // It is written as soon as the process knows.
    await started.event("coordinator_fenced");
    const fromMs = systemClock.monotonicMs();
    const ending = await started.ended;
    const tookMs = systemClock.monotonicMs() - fromMs;
    const fenced = started.seen("coordinator_fenced");
    return { tookMs, ending, fenced, lastTopic: started.events.at(-1)?.topic };
  }

  it("fence_aborts_within_5s", async () => {
    const [free, busy, own] = await Promise.all([
      drill(["coordinator", "test-fence"]),
      drill(["coordinator", "test-fence", "--busy"]),
      drill(["test-fence"], OWN_BINARY),
    ]);
    for (const { tookMs, ending, fenced, lastTopic } of [free, busy, own]) {
      expect(ending).to.deep.equal({ code: null, signal: "SIGABRT" });
      expect(tookMs).to.be.below(5_000);
      expect(fenced).to.have.length(1);
      expect(fenced[0]).to.include({ epoch: 0 });
      expect(lastTopic).to.equal("coordinator_fenced");
    }
    // A leader that is not stuck has read who leads now; one that is stuck was found so by the other thread.
    expect([free, busy, own].map(({ fenced }) => fenced[0]?.seen_epoch)).to.deep.equal([1, null, 1]);
    expect((await readdir(directory.path)).filter((name) => name.startsWith("core"))).to.deep.equal([]);
  });
});
