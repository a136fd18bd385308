#!/usr/bin/env node
// `rollout` from source, for people who work on it: nothing has to be built.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { requireNode } from "./require-node.js";

if (requireNode()) {
  const { main } = await import("../src/cli/main.ts");
  const packageFile = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  await main(process.argv.slice(2), {
    root: fileURLToPath(new URL("..", import.meta.url)),
    // oclif would look in dist, and run what was built last without a word; a manifest is of that too.
    pjson: { ...packageFile, oclif: { ...packageFile.oclif, commands: "./src/commands" } },
    ignoreManifest: true,
  });
}
