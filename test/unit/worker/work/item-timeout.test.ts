import { expect } from "chai";
import type { Finished } from "../../../../src/worker/work/execution.ts";
import { Executor } from "../../../../src/worker/work/executor.ts";
import { Plugins } from "../../../../src/worker/backends/plugins.ts";
import { assignedItem } from "../../../support/assigned-item.ts";
import { HeldBackend } from "../../../support/held-backend.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

describe("how long an attempt may take", () => {
  const CASES: readonly [what: string, run: number, plugin: number | undefined, endsAfterMs: number][] = [
    ["is what the plugin says when the run says nothing", 0, 300, 300],
    ["is what the run says, when both say something", 500, 300, 500],
    ["is what the run says, when the plugin says nothing", 500, undefined, 500],
  ];
  for (const [what, timeoutMs, itemTimeoutMs, endsAfterMs] of CASES) {
    it(what, async () => {
      const clock = new VirtualClock();
      const finished: Finished[] = [];
      const backend = new HeldBackend();
      const executor = new Executor({
        plugins: new Plugins([{ name: "mock", version: "1", backend, itemTimeoutMs }], () => undefined),
        ...{ slots: 1, prefetch: 1, maxOutputBytes: 8, maxCheckpointBytes: 8, env: {}, clock },
        log: new RecordingLogger(),
        mayStart: () => true,
        onFinished: (one) => void finished.push(one),
        onHandedBack: () => undefined,
        onRoom: () => undefined,
      });
      executor.take(assignedItem(1, { timeoutMs }));
      executor.pump();
      await clock.advance(endsAfterMs - 1);
      expect(backend.of(1).signal.aborted).to.equal(false);
      await clock.advance(1);
      expect(backend.of(1).signal.aborted).to.equal(true);
    });
  }
});
