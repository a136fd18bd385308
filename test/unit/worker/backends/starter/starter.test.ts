import { expect } from "chai";
import type { Child } from "../../../../../src/worker/backends/child.ts";
import { allGone, isRunning } from "../../../../support/backend-rig.ts";
import { openChildHost } from "../../../../support/child-host.ts";
import type { OpenedHost } from "../../../../support/child-host.ts";
import { eventually } from "../../../../support/eventually.ts";
import { RecordingLogger } from "../../../../support/recording-logger.ts";
import { environmentFor } from "../../../../support/rollout-process.ts";
import { useTemporaryDirectory } from "../../../../support/temporary-directory.ts";

describe("a starter", function () {
  this.timeout(20_000);
  let opened: OpenedHost;
  // Before the directory is gone.
  afterEach(() => opened.close());
  const directory = useTemporaryDirectory();
  beforeEach(async () => {
    opened = await openChildHost(directory.file("records"), new RecordingLogger());
  });

  async function sleeper(): Promise<Child> {
    const command = ["sleep", "600"];
    const start = await opened.host.spawn({ command, cwd: directory.path, env: environmentFor() });
    if (start.kind === "failed") throw new Error(start.failure.reason);
    return start.child;
  }

  it("that dies is replaced; nobody knows how what it had started ended, and nothing of it is left", async () => {
    const first = await sleeper();
    const { pid: before = 0 } = opened.starter;
    process.kill(before, "SIGKILL");
    expect(await first.exited).to.deep.equal({ code: null, signal: null });
    await first.kill(0);
    expect(isRunning(first.pid)).to.equal(false);
    const second = await eventually("another start", () => sleeper().catch(() => undefined));
    expect(opened.starter.pid).to.not.equal(before);
    await second.kill(0);
    expect((await second.exited).signal).to.equal("SIGKILL");
  });

  it("is gone when it is closed", async () => {
    await (await sleeper()).kill(0);
    const { pid = 0 } = opened.starter;
    await opened.close();
    await allGone([pid]);
  });
});
