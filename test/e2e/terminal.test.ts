// Text of others, where a terminal shows it: of user code, inputs and messages. A pipe and a file have it byte for byte.
import { readFileSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { withLocalRun } from "../support/local-run.ts";
import { runOnTerminal } from "./on-terminal.ts";

/** A title for the window, a reset, a control of eight bits, a line written over, and a name that reads backwards. */
const EVIL = "\u001b]0;owned\u0007\u001bc\u009b2Jover\rwritten \u202egnp.exe\u200b";
/** Our own sequences: colours and the moves of a live display. */
const OWN = /\u001b\[(?:0|2|31|32|33|36|90)m|\u001b\[\d*[AJK]|\r/g;
const OBEYED = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u202e]/;
const PLUGIN = `name = "evil"
version = "1"
backend = "command"

[command]
command = ["sh", "-c", "cat evil >&2; cat evil; test $0 = good", "{.how}"]
`;

function expectSafe(shown: string): void {
  expect(shown.replace(OWN, "")).not.to.match(OBEYED);
}

async function startEvil(cluster: Cluster): Promise<void> {
  writeFileSync(cluster.file("evil"), EVIL);
  writeFileSync(cluster.file("evil.toml"), PLUGIN);
  const items = [
    { id: "good", how: "good" },
    { id: EVIL, how: `bad ${EVIL}` },
  ];
  const lines = items.map((item) => `${JSON.stringify(item)}\n`);
  writeFileSync(cluster.file("in.jsonl"), lines.join(""));
  await cluster.startCoordinator();
  await cluster.startWorker();
  await cluster.run("submit", "in.jsonl", "--seal");
  await cluster.coordinator.event("run_completed");
}

describe("a terminal", () => {
  it("obeys nothing of what others wrote, and a pipe and a file have it to the byte", async () => {
    const settings = { "run.max_attempts": 1, "worker.plugins": ["./evil.toml"] };
    await withCluster(settings, async (cluster) => {
      await startEvil(cluster);
      const shown = (...words: string[]): Promise<string> => runOnTerminal(words, cluster.directory);

      const logs = await shown("logs", "good");
      expectSafe(logs);
      expect(logs).to.equal(String.raw`\u001b]0;owned\u0007\u001bc\u009b2Jover\rwritten \u202egnp.exe\u200b`);
      expect((await cluster.run("logs", "good")).stdout).to.equal(EVIL);

      const table = await shown("results", "--format", "csv", "--order", "completion");
      expectSafe(table);
      expect(table).to.contain(String.raw`over\rwritten \u202egnp.exe`);
      await cluster.run("results", "--format", "csv", "-o", "out.csv");
      const file = readFileSync(cluster.file("out.csv"), "utf8");
      expect(file).to.contain(EVIL);
      expect((await cluster.run("results", "--format", "csv")).stdout).to.equal(file);

      // A program may read a terminal as well: what it reads is still the same JSON.
      const lines = await shown("results", "--order", "completion");
      expectSafe(lines);
      const outputs = lines
        .trim()
        .split("\r\n")
        .map((line) => JSON.parse(line) as { output?: string });
      expect(outputs.map(({ output }) => output)).to.include(EVIL);

      const others = await Promise.all([
        shown("explain", EVIL),
        shown("events"),
        shown("explain", `none ${EVIL}`),
      ]);
      for (const other of others) expectSafe(other);
    });
  });

  it("that shows a local run obeys nothing of its results either", async () => {
    await withLocalRun({ items: 1 }, async (place) => {
      writeFileSync(place.file("evil"), EVIL);
      const command = ["sh", "-c", `cat evil; cat evil >&2`];
      writeFileSync(place.file("in.txt"), "one\n");
      const shown = await runOnTerminal(
        ["run", "in.txt", "--text", "--workers", "1", "--", ...command],
        place.directory,
      );
      expectSafe(shown);
      expect(shown).to.contain(String.raw`\u009b2Jover\rwritten \u202egnp.exe\u200b`);
    });
  });
});
