#!/usr/bin/env node
// `rollout`, as it is installed: from dist.
import { fileURLToPath } from "node:url";
import { keepCompiled } from "./compile-cache.js";
import { requireNode } from "./require-node.js";

if (requireNode()) {
  keepCompiled();
  const { main } = await import("../dist/src/cli/main.js");
  await main(process.argv.slice(2), { root: fileURLToPath(new URL("..", import.meta.url)) });
}
