// Processes of another host, each at the end of an ssh connection of its own. rollout is installed there: what fits that host's
// processor and Node is chosen by its own npm, not by us.
//
// Keeps true: a process there ends when its connection does, however this one ends.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { text } from "node:stream/consumers";
import type { Launcher, Started, Variables } from "./launcher.ts";

export interface SshOptions {
  /** As ssh takes it: `host`, `user@host` or an alias of its configuration. */
  readonly destination: string;
  /** ssh and its options. */
  readonly ssh: readonly string[];
  /** How rollout is started there, for that host's shell. */
  readonly program: string;
  /** The version that has to be installed there. */
  readonly version: string;
}

export class SshLauncher implements Launcher {
  readonly name: string;
  readonly address: string;
  readonly #options: SshOptions;
  #directory: string | undefined;
  #started = 0;

  constructor(options: SshOptions) {
    this.#options = options;
    this.name = options.destination;
    this.address = options.destination.replace(/^.*@/, "");
  }

  async prepare(): Promise<void> {
    const { program, version } = this.#options;
    const found = await this.#say(`${program} --version`);
    if (!found.startsWith(`rollout ${version} `))
      throw new Error(`${this.name} has ${found.trim()}, and this is rollout ${version}: install it there`);
    this.#directory = (await this.#say("umask 077; mktemp -d /tmp/rollout-smoke-XXXXXXXX")).trim();
  }

  async write(file: string, content: string): Promise<void> {
    await this.#say(`umask 077; cd ${this.#place} && cat > ${quoted(file)}`, content);
  }

  read(file: string): Promise<string> {
    return this.#say(`cd ${this.#place} && cat ${quoted(file)}`);
  }

  start(words: readonly string[], variables: Variables): Started {
    const pidFile = `process-${++this.#started}.pid`;
    const set = Object.entries(variables).map(([name, value]) => quoted(`${name}=${value}`));
    const command = `env ${set.join(" ")} ${this.#options.program} ${words.map(quoted).join(" ")}`;
    const child = this.#connect(
      [
        `cd ${this.#place} || exit 1`,
        "exec 3<&0",
        `${command} </dev/null 3<&- & child=$!`,
        `echo $child > ${pidFile}`,
        // The connection's end is the end of its standard input.
        "(cat <&3; kill -9 $child) >/dev/null 2>&1 & watcher=$!",
        "wait $child; code=$?",
        "kill $watcher 2>/dev/null",
        "exit $code",
      ].join("\n"),
    );
    const signal = async (name: string): Promise<void> => {
      const kill = `kill -${name.slice("SIG".length)} $(cat ${pidFile}) 2>/dev/null || true`;
      await this.#say(`cd ${this.#place} && ${kill}`);
    };
    return { child, signal };
  }

  async remove(): Promise<void> {
    const directory = this.#directory;
    this.#directory = undefined;
    if (directory !== undefined) await this.#say(`rm -rf ${quoted(directory)}`);
  }

  get #place(): string {
    if (this.#directory === undefined) throw new Error("nothing is prepared");
    return quoted(this.#directory);
  }

  /** The output of a command there. */
  async #say(command: string, input = ""): Promise<string> {
    const child = this.#connect(command);
    const { stdin, stdout, stderr } = child;
    if (stdin === null || stdout === null || stderr === null) throw new Error("ssh has no pipes");
    stdin.on("error", () => undefined).end(input);
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once("error", reject).once("close", resolve);
    });
    const [code, said, complaint] = await Promise.all([ended, text(stdout), text(stderr)]);
    if (code === 0) return said;
    throw new Error(`on ${this.name}, \`${command}\` ended with ${String(code)}: ${complaint.trim()}`);
  }

  #connect(command: string): ChildProcess {
    const [ssh = "ssh", ...options] = this.#options.ssh;
    const words = [...options, "-T", "--", this.#options.destination, `sh -c ${quoted(command)}`];
    return spawn(ssh, words, { stdio: ["pipe", "pipe", "pipe"] });
  }
}

/** One word for a shell. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
