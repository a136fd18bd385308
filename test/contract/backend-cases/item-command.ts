// A program that executes one item of the backends' contract as the `command` backend has it.
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { behave } from "../../support/item-behaviour.ts";
import type { ItemBehaviour } from "../../support/item-behaviour.ts";

const file = process.env["ROLLOUT_CHECKPOINT"] ?? "";

const stateFile = process.env["ROLLOUT_STATE"] ?? "";

function saved(): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

const behaved = await behave(JSON.parse(readFileSync(0, "utf8")) as ItemBehaviour, {
  checkpoint: saved(),
  slot: process.env["ROLLOUT_SLOT"],
  save: (checkpoint) => {
    writeFileSync(`${file}.new`, checkpoint);
    renameSync(`${file}.new`, file);
  },
  state: existsSync(stateFile) ? JSON.parse(readFileSync(stateFile, "utf8")) : null,
  learn: (state) => {
    if (state === null) rmSync(stateFile);
    else writeFileSync(stateFile, JSON.stringify(state));
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
