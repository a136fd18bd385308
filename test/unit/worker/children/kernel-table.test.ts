import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect } from "chai";
import { systemClock } from "../../../../src/base/clock.ts";
import { parsePs, runningProcesses, startOf } from "../../../../src/worker/children/kernel-table.ts";

describe("the table of processes", () => {
  it("has this process, started when it was", async () => {
    const found = (await runningProcesses(systemClock)).find(({ pid }) => pid === process.pid);
    expect(found?.startedAt).to.equal(startOf(process.pid, systemClock));
    expect(found?.group).to.be.greaterThan(0);
  });

  it("is read again for whoever asks later, and once for all who ask at one time", async () => {
    const [one, same] = [runningProcesses(systemClock), runningProcesses(systemClock)];
    expect(same).to.equal(one);
    await one;
    const child = spawn("sleep", ["60"]);
    try {
      await once(child, "spawn");
      const found = await runningProcesses(systemClock);
      expect(found.map(({ pid }) => pid)).to.include(child.pid);
    } finally {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
  });

  it("is read from what ps says where there is nothing else, without what has ended", () => {
    const lines = [
      "    1     1 Ss   Mon Nov 16 08:00:00 2026",
      "  77    70 S+   Mon Nov 16 09:30:01 2026",
      "  78    70 Z    Mon Nov 16 09:30:02 2026",
      "",
    ];
    const startedAt = (text: string): string => String(Date.parse(text) / 1_000);
    expect(parsePs(lines.join("\n"))).to.deep.equal([
      { pid: 1, group: 1, session: undefined, startedAt: startedAt("Nov 16 08:00:00 2026") },
      { pid: 77, group: 70, session: undefined, startedAt: startedAt("Nov 16 09:30:01 2026") },
    ]);
  });
});
