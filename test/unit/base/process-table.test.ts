import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { findProcess, runningProcesses } from "../../../src/base/process-table.ts";

describe("the table of processes", () => {
  it("has this process, started when it was", async () => {
    const found = (await runningProcesses(systemClock)).find(({ pid }) => pid === process.pid);
    expect(found).to.deep.equal(findProcess(process.pid));
    expect(found?.group).to.be.greaterThan(0);
  });

  it("is read again for each later question, and once for questions asked at one time", async () => {
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
});
