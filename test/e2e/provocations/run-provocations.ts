// Ways to the rows of the table of errors that only `rollout run` leads to.
import { mkdir, writeFile } from "node:fs/promises";
import { commandManifest, commandManifestText } from "../../../src/config/manifest.ts";
import { taskOf } from "../../../src/config/task.ts";
import { describeHolder, readHolder } from "../../../src/storage/level/holder-file.ts";
import type { Cluster } from "../../support/cluster.ts";
import { eventually } from "../../support/eventually.ts";
import type { Provocation } from "./scene.ts";

type RunCode =
  | "input_refused"
  | "input_changed"
  | "item_too_large"
  | "run_held"
  | "local_run_ended"
  | "process_given_up"
  | "run_directory_unusable"
  | "other_run_task";

/** The words after `--` are the command's own: flags of ours may still be added to these words. */
async function runWords(cluster: Cluster, command: readonly string[]): Promise<string[]> {
  const plugin = `${command.join("-")}.toml`;
  await writeFile(cluster.file(plugin), commandManifestText(command, cluster.directory));
  return ["run", "items.jsonl", "-o", "out.jsonl", "--workers", "1", "--plugin", plugin];
}

async function writeItems(cluster: Cluster, text = `"one"\n`): Promise<void> {
  await writeFile(cluster.file("items.jsonl"), text);
}

export const RUN_PROVOCATIONS: { readonly [Code in RunCode]: Provocation<Code> } = {
  input_refused: {
    by: "a line that is not JSON, in an input that is looked at first",
    stage: async (cluster) => {
      await writeItems(cluster, `"one"\n{\n`);
      const params = { file: "items.jsonl", line: 2, reason: "it is not JSON at column 2" };
      return { args: await runWords(cluster, ["cat"]), params };
    },
  },
  input_changed: {
    by: "somebody who edits the input when it was looked at (a module that every Node loads first)",
    stage: async (cluster) => {
      await writeItems(cluster);
      const editor = cluster.file("editor.mjs");
      await writeFile(
        editor,
        `import { writeFileSync } from "node:fs";
        if (process.argv.includes("coordinator")) writeFileSync("items.jsonl", '"' + process.pid + '"\\n"two"\\n');`,
      );
      return {
        args: await runWords(cluster, ["cat"]),
        env: { NODE_OPTIONS: `--import ${editor}` },
        tellsMore: true,
        params: { file: "items.jsonl" },
      };
    },
  },
  item_too_large: {
    by: "a line that is longer than the limit",
    stage: async (cluster) => {
      await writeItems(cluster, `"one"\n"${"x".repeat(2_000)}"\n`);
      const args = [...(await runWords(cluster, ["cat"])), "--payload-limit", "1KiB"];
      return { args, params: { file: "items.jsonl", line: 2, bytes: 2_002, limit: 1_024 } };
    },
  },
  run_held: {
    by: "the same command twice at once",
    stage: async (cluster) => {
      await writeItems(cluster);
      const args = await runWords(cluster, ["sleep", "60"]);
      const first = cluster.launch(args);
      const directory = cluster.file("out.jsonl.rollout");
      const holder = await eventually("who holds it", () =>
        readHolder(`${directory}/supervisor`).catch(() => undefined),
      );
      const advice =
        "wait until that has ended, or end it: what it has done is kept; the same command with a larger --workers adds workers to it";
      const params = { directory, holder: describeHolder(holder), advice };
      return { args, params, after: () => first.kill() };
    },
  },
  local_run_ended: {
    by: "a question about a run that is complete",
    stage: async (cluster) => {
      await writeItems(cluster);
      const words = await runWords(cluster, ["cat"]);
      await cluster.run(...words);
      const directory = "out.jsonl.rollout";
      const look = `to look into it start \`rollout coordinator run -c ${directory}\`, and ask again in another terminal`;
      const params = {
        directory,
        state: "has ended, with 1 done and 0 failed",
        advice: `${look}; \`rollout ${words.join(" ")}\` goes on with it`,
      };
      return { args: ["explain", "one", "-c", cluster.file(directory)], params };
    },
  },
  process_given_up: {
    by: "something that kills each worker at once (a module that every Node loads first)",
    stage: async (cluster) => {
      await writeItems(cluster);
      const killer = cluster.file("killer.mjs");
      await writeFile(killer, `if (process.argv.includes("worker")) process.kill(process.pid, "SIGKILL");\n`);
      const log = cluster.file("out.jsonl.rollout/worker-1.log");
      return {
        args: await runWords(cluster, ["cat"]),
        env: { NODE_OPTIONS: `--import ${killer}` },
        tellsMore: true,
        params: {
          who: "worker 1",
          reason: "it was killed (SIGKILL) again and again",
          advice: `look at ${log}; run the same command to go on`,
        },
      };
    },
  },
  run_directory_unusable: {
    by: "a directory with something else in it",
    stage: async (cluster) => {
      await writeItems(cluster);
      await mkdir(cluster.file("photos"));
      await writeFile(cluster.file("photos/cat.jpg"), "");
      const params = { directory: cluster.file("photos"), reason: "it has files of something else: cat.jpg" };
      return { args: [...(await runWords(cluster, ["cat"])), "--dir", "photos"], params };
    },
  },
  other_run_task: {
    by: "another command on the output of the first",
    stage: async (cluster) => {
      await writeItems(cluster);
      const { code, stderr } = await cluster.run(...(await runWords(cluster, ["cat"])));
      if (code !== 0) throw new Error(`the first run ended with ${String(code)}: ${stderr}`);
      const summaryOf = (command: string): string =>
        taskOf(commandManifest([command], cluster.directory)).summary;
      const [found, wanted] = [summaryOf("cat"), summaryOf("rev")];
      const params = { output: "out.jsonl", found, wanted, files: "out.jsonl out.jsonl.rollout" };
      return { args: await runWords(cluster, ["rev"]), params };
    },
  },
};
