// Fleets of hosts for tests: an sshd that all tests of a file share, and providers with a directory of their own on its hosts.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startSshd } from "../../scripts/sshd.ts";
import type { Sshd } from "../../scripts/sshd.ts";
import { systemClock } from "../../src/base/clock.ts";
import { gate } from "../../src/base/gate.ts";
import { isUlid } from "../../src/base/ids.ts";
import { systemRandom } from "../../src/base/random.ts";
import { SshProvider } from "../../src/fleet/ssh/ssh-provider.ts";
import type { SshOptions } from "../../src/fleet/ssh/ssh-provider.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import type { TemporaryDirectory } from "../support/temporary-directory.ts";
import { IDLE_WORKER } from "./provider.ts";

type Lines = (directory: string) => readonly string[];

/** One sshd, which starts before the tests of a `describe`; with lines of both sides' configuration, by where it has its files. */
export function useSshd(
  names: readonly string[],
  { client, server }: { readonly client?: Lines; readonly server?: Lines } = {},
): () => Sshd & { readonly directory: string } {
  let started: (Sshd & { readonly directory: string }) | undefined;
  before(async () => {
    const directory = mkdtempSync(join(tmpdir(), "rollout-sshd-"));
    const lines = { client: client?.(directory) ?? [], server: server?.(directory) ?? [] };
    started = { ...(await startSshd({ directory, names, ...lines })), directory };
  });
  after(async () => {
    await started?.close();
    if (started !== undefined) rmSync(started.directory, { recursive: true, force: true });
  });
  return () => {
    if (started === undefined) throw new Error("the sshd has not started");
    return started;
  };
}

export const LOGINS_AT_ONCE = 8;
let opened = 0;

type Changed = Partial<Omit<SshOptions, "hosts">> & { readonly hosts?: readonly string[] };

export class HostRig {
  readonly log = new RecordingLogger();
  readonly client: readonly [string, ...string[]];
  /** Where workers of it start. */
  readonly home: string;
  readonly #directory: TemporaryDirectory;
  readonly #worker: string;
  readonly #logins = gate(LOGINS_AT_ONCE);

  constructor(directory: TemporaryDirectory, { config }: Sshd, worker = IDLE_WORKER) {
    this.#directory = directory;
    this.client = ["ssh", "-F", config];
    this.home = directory.file(`home of ${++opened}`);
    this.#worker = this.program("worker", worker);
  }

  program(name: string, text: string): string {
    const path = this.#directory.file(name);
    writeFileSync(path, text);
    chmodSync(path, 0o755);
    return path;
  }

  /** A client of ours in the place of ssh. `$hello` is what it has to say first; `$script` is what it is told. */
  fake(name: string, text: string): readonly [string] {
    const hello = "for last; do :; done\nhello=${last%%;*} hello=${hello#echo }";
    return [this.program(name, `#!/bin/sh\n${hello}\n${text}\n`)];
  }

  provider({ hosts = ["a", "b"], ...changed }: Changed = {}): SshProvider {
    return new SshProvider({
      ...{ client: this.client, directory: this.#directory.path, program: `'${this.#worker}'`, words: [] },
      ...{ environment: {}, hostDirectory: this.home, manifest: undefined, timeLimitMs: 60_000 },
      tunnelTo: undefined,
      ...{ logins: this.#logins, isId: isUlid, clock: systemClock, random: systemRandom, log: this.log },
      ...changed,
      hosts: hosts.map((host) => ({ host, slots: 1 })),
    });
  }

  get warnings(): readonly string[] {
    return this.log.lines.filter(({ level }) => level === "warn").map(({ message }) => message);
  }
}
