// Says in one line when this Node is not the one to work with. Plain JavaScript, because it has to run where nothing is
// installed yet: `--to-install` asks for a Node that can install, without it for the exact one that package.json pins.
import { readFileSync } from "node:fs";

const TO_INSTALL = 20;
const wanted = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")).devDependencies
  .node;
const running = process.versions.node;

if (process.argv.includes("--to-install")) {
  if (Number(running.split(".")[0]) < TO_INSTALL) {
    console.error(`Node ${TO_INSTALL} or newer is needed to install, and this is ${running}`);
    process.exitCode = 2;
  }
} else if (running !== wanted) {
  console.error(
    `Node ${wanted} is needed, and this is ${running}: use make, or put node_modules/.bin first on PATH`,
  );
  process.exitCode = 2;
}
