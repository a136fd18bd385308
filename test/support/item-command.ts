// A program that executes one item of the backends' contract as the `command` backend has it.
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { behave } from "./item-behaviour.ts";
import type { ItemBehaviour } from "./item-behaviour.ts";

const file = process.env["ROLLOUT_CHECKPOINT"] ?? "";

function saved(): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

const behaved = await behave(JSON.parse(readFileSync(0, "utf8")) as ItemBehaviour, {
  checkpoint: saved(),
  save: (checkpoint) => {
    writeFileSync(`${file}.new`, checkpoint);
    renameSync(`${file}.new`, file);
  },
  complain: (words) => writeFileSync(2, `${words}\n`),
  ignoreEnd: () => {
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => undefined);
  },
});
switch (behaved.kind) {
  case "value":
    process.stdout.write(`${JSON.stringify(behaved.value)}\n`);
    break;
  case "bytes":
    process.stdout.write(behaved.bytes);
    break;
  case "failed":
    process.stderr.write(`${behaved.words}\n`);
    process.exitCode = 3;
}
