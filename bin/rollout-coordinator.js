#!/usr/bin/env node
// The coordinator as a program of its own: `rollout-coordinator …` is `rollout coordinator run …`.
import { fileURLToPath } from "node:url";
import { keepCompiled } from "./compile-cache.js";
import { requireNode } from "./require-node.js";

if (requireNode()) {
  keepCompiled();
  const { main } = await import("../dist/src/cli/main.js");
  const argv = process.argv.slice(2);
  const name = argv[0] === "test-fence" ? argv.splice(0, 1) : ["run"];
  const isVersion = argv[0] === "--version";
  await main(isVersion ? argv : ["coordinator", ...name, ...argv], {
    root: fileURLToPath(new URL("..", import.meta.url)),
  });
}
