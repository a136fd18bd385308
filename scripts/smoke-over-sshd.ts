// `make smoke-ssh`: the smoke over ssh, to this machine. An sshd of its own on a free port of loopback, with keys and
// configuration of its own in a temporary directory: the system's is neither read nor changed. Where there is no sshd it says so.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { sshdProgram, SSHD_PACKAGE, startSshd } from "./sshd.ts";
import type { Sshd } from "./sshd.ts";

const SMOKE = fileURLToPath(new URL("smoke-3node.ts", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../bin/run.js", import.meta.url));
const HOST = "127.0.0.1";

/** The smoke's exit code. */
async function runSmoke(sshConfig: string, words: readonly string[]): Promise<number> {
  const smoke = spawn(process.execPath, [SMOKE, ...words, "--simulate-preemption"], {
    stdio: "inherit",
    env: {
      ...process.env,
      ROLLOUT_SMOKE_CLOUD: "1",
      ROLLOUT_SMOKE_HOSTS: Array.from({ length: 4 }, () => HOST).join(),
      ROLLOUT_SMOKE_SSH: `ssh -F ${sshConfig}`,
      ROLLOUT_SMOKE_PROGRAM: `${process.execPath} ${PROGRAM}`,
      ROLLOUT_SMOKE_PORT: "0",
      ROLLOUT_SMOKE_MINUTES: "1",
    },
  });
  const pass = (signal: NodeJS.Signals): void => void smoke.kill(signal);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, pass);
  return new Promise((resolve) => {
    smoke.once("error", () => resolve(1));
    smoke.once("exit", (code) => resolve(code ?? 1));
  });
}

async function main(words: readonly string[]): Promise<number> {
  if (sshdProgram() === undefined) {
    console.error(`sshd is not here, so nothing was tried; on Debian: apt-get install ${SSHD_PACKAGE}`);
    return 2;
  }
  const directory = mkdtempSync(join(tmpdir(), "rollout-sshd-"));
  let sshd: Sshd | undefined;
  try {
    sshd = await startSshd({ directory, server: ["AllowTcpForwarding no", "MaxStartups 100"] });
    return await runSmoke(sshd.config, words.length > 0 ? words : ["gcp"]);
  } finally {
    await sshd?.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

process.exitCode = await main(process.argv.slice(2));
