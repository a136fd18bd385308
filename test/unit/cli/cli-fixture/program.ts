// The program with commands that only tests need, in place of its own.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Interfaces } from "@oclif/core";
import { main } from "../../../../src/cli/main.ts";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
const packageFile = JSON.parse(readFileSync(`${root}/package.json`, "utf8")) as Interfaces.PJSON;
const commands = "./test/unit/cli/cli-fixture/commands";
await main(process.argv.slice(2), {
  root,
  pjson: { ...packageFile, oclif: { ...packageFile.oclif, commands } },
  ignoreManifest: true,
});
