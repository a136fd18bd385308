// A tunnel from a host back to the coordinator: `ssh -R`, kept open until it is closed. Its port on the host stays the same, so workers there find
// the coordinator again at the address that they have.
//
// Keeps true: it ends with this process, however that ends, because the far end of its input is what keeps it.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { formatAddress } from "../../base/address.ts";
import type { Address } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import type { Gate } from "../../base/gate.ts";
import { backoffCapMs } from "../../base/random.ts";
import type { BackoffRange, Random } from "../../base/random.ts";
import { systemReason } from "../../base/system-reason.ts";
import type { Logger } from "../../observe/log.ts";
import { killGroup } from "../bounded-child.ts";
import { loginWords, newNonce, reasonOf } from "./host-call.ts";

export interface TunnelOptions {
  readonly client: readonly [string, ...string[]];
  readonly directory: string;
  readonly timeLimitMs: number;
  readonly logins: Gate;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Where the coordinator listens on this machine. */
  readonly tunnelTo: () => Address;
}

export type Opened =
  | { readonly kind: "open"; readonly port: number }
  | { readonly kind: "closed"; readonly reason: string };

const REOPEN: BackoffRange = { baseMs: 250, ceilingMs: 10_000 };
const STDERR_CHARS_MAX = 4_096;
const ALLOCATED = /Allocated port (\d+) for remote forward/;

export class Tunnel {
  readonly #options: TunnelOptions;
  readonly #host: string;
  readonly #closing = new AbortController();
  /** Once it is known, for good. */
  #port: number | undefined;
  #isOpen = false;
  #isKept = false;
  /** The outcome of the try that is under way, or of the next one. */
  #outcome = Promise.withResolvers<Opened>();
  #child: ChildProcess | undefined;

  constructor(options: TunnelOptions, host: string, port: number | undefined) {
    this.#options = options;
    this.#host = host;
    this.#port = port;
  }

  get port(): number | undefined {
    return this.#port;
  }

  /** Resolves when it is open, or a try has failed. One that has ever been open, or had to be, is tried again until it is closed. */
  open(): Promise<Opened> {
    if (this.#isOpen && this.#port !== undefined) return Promise.resolve({ kind: "open", port: this.#port });
    const { promise } = this.#outcome;
    if (!this.#isKept) void this.#keep();
    return promise;
  }

  get #isClosing(): boolean {
    return this.#closing.signal.aborted;
  }

  close(): void {
    this.#closing.abort();
    killGroup(this.#child?.pid);
  }

  async #keep(): Promise<void> {
    const { clock, logins, log } = this.#options;
    const { signal } = this.#closing;
    this.#isKept = true;
    for (let failures = 1; !signal.aborted; failures++) {
      const { opened, ended } = await logins(() => this.#start());
      this.#isOpen = opened.kind === "open";
      if (opened.kind === "open") {
        this.#port = opened.port;
        failures = 1;
      }
      const { resolve } = this.#outcome;
      this.#outcome = Promise.withResolvers();
      resolve(opened);
      await ended;
      this.#isOpen = false;
      // Nobody looks at a port that it has never had.
      if (this.#port === undefined) break;
      if (opened.kind === "open" && !this.#isClosing)
        log.warn("the tunnel to a host has ended, and is opened again", { host: this.#host });
      await sleep(clock, backoffCapMs(REOPEN, failures), signal);
    }
    this.#isKept = false;
    this.#outcome.resolve({ kind: "closed", reason: `${this.#host}: its tunnel was closed` });
    this.#outcome = Promise.withResolvers();
  }

  /** Resolves when it is open, or is known not to be. */
  async #start(): Promise<{ readonly opened: Opened; readonly ended: Promise<unknown> }> {
    const { client, directory, timeLimitMs, clock, random } = this.#options;
    if (this.#closing.signal.aborted)
      return { opened: { kind: "closed", reason: "it was closed" }, ended: Promise.resolve() };
    const line = `rollout-${newNonce(random)}`;
    const remote = { command: `echo ${line}; exec cat >/dev/null`, options: this.#forwarding() };
    const [program, ...words] = loginWords(client, this.#host, remote);
    const child = spawn(program, words, { cwd: directory, detached: true, stdio: ["pipe", "pipe", "pipe"] });
    this.#child = child;
    child.stdin.on("error", () => undefined);
    const said = { stdout: "", stderr: "" };
    const opened = Promise.withResolvers<Opened>();
    const close = (otherwise: string): void =>
      opened.resolve({ kind: "closed", reason: `${this.#host}: ${reasonOf(said.stderr, otherwise)}` });
    for (const name of ["stdout", "stderr"] as const)
      child[name].on("data", (chunk: Buffer) => {
        said[name] = (said[name] + chunk.toString("utf8")).slice(-STDERR_CHARS_MAX);
        const port = this.#port ?? Number(ALLOCATED.exec(said.stderr)?.[1] ?? 0);
        if (port > 0 && said.stdout.includes(`${line}\n`)) opened.resolve({ kind: "open", port });
      });
    const ended = new Promise<unknown>((resolve) => {
      child.once("error", (error) => {
        close(systemReason(error));
        resolve(error);
      });
      child.once("close", () => {
        close("its tunnel has ended");
        resolve(undefined);
      });
    });
    // Its id may be another's then.
    void ended.then(() => {
      if (this.#child === child) this.#child = undefined;
    });
    const limit = clock.after(timeLimitMs, () => {
      close(`its tunnel was not open after ${timeLimitMs} ms`);
      killGroup(child.pid);
    });
    const outcome = await opened.promise;
    limit.cancel();
    return { opened: outcome, ended };
  }

  #forwarding(): readonly string[] {
    const to = formatAddress(this.#options.tunnelTo());
    return ["ExitOnForwardFailure=yes", "LogLevel=INFO", `RemoteForward=127.0.0.1:${this.#port ?? 0} ${to}`];
  }
}
