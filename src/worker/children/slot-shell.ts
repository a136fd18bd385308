// A shell that starts one command after the other for a worker: a fork of one megabyte in place of a fork of Node, and no program
// between. It leads a session, with a group of its own for each command; the commands' streams are pipes that it makes anew for each.
//
// Keeps true: the words of a command reach it unread by any shell; a shell in which anything was left is ended and never used again;
// how a command ended is told exactly, or as an end that nobody knows.
import { closeSync, constants, openSync, readFileSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { constants as system } from "node:os";
import { Writable } from "node:stream";
import type { Clock, Timer } from "../../base/clock.ts";
import { isDoneWithin } from "../../base/clock.ts";
import { errnoOf } from "../../base/errors.ts";
import { processLink } from "../../base/process-table.ts";
import { ChildGroup } from "./child-group.ts";
import type { Child, ChildEnd, ChildRequest, ChildStart } from "./child.ts";
import { PIPE_BYTES, PipeOutput } from "./pipe-output.ts";
import type { Starter } from "./starter.ts";

/**
 * $1: what the shell calls itself in its messages. Descriptor 4 goes to the worker; from there come, for each command, a length and so many
 * characters, which name its words and its variables. 10 is the next command's standard input, 11 and 12 are where the worker reads its
 * outputs, 13 and 14 where it writes them: a here-string is a pipe, as long as it is short.
 *
 * With job control a command has a group of its own, and its death by a signal is told in a line: a shell's exit code alone
 * cannot tell `exit 130` from SIGINT. That this shell keeps to that is tried first. `wait` returns for one that stands still,
 * too; \`wait -f\` would not, and loops for ever over one that has ended before it was waited for (bash 5.2).
 */
const SCRIPT = `{
exec </dev/null >/dev/null 2>/dev/null
set -m
exec 2>&4
BASH_ARGV0=$1
_rollout_pipes() {
  exec 10<<<'' 11<<<'' 12<<<''
  read -r <&10; read -r <&11; read -r <&12
  exec 13>/proc/self/fd/11 14>/proc/self/fd/12
}
(kill -s INT "$BASHPID") & wait $!; echo "e $?" >&4
(exit 130) & wait $!; echo "e $?" >&4
_rollout_pipes
echo ready >&4
while IFS= read -r _rollout_n <&4; do
  IFS= read -r -N "$_rollout_n" _rollout_n <&4 || exit
  eval "$_rollout_n"
  "\${_rollout_w[@]}" <&10 >&13 2>&14 4>&- 10<&- 11<&- 12<&- 13>&- 14>&- &
  _rollout_pipes
  echo "s $!" >&4
  wait $!; _rollout_n=$?
  if [ $_rollout_n -gt 128 ]; then
    while kill -0 $! 2>/dev/null; do read -r -t 0.1 <&4; done
    wait $!; _rollout_n=$?
  fi
  echo "e $_rollout_n" >&4
done
exit
}
`;
/** The programs, by their descriptors in the shell. */
const [INPUT, OUTPUT, ERRORS] = [10, 11, 12];
/** The beginning of each message of the shell's own. */
const SHELL_NAME = "rollout-shell";
/** Exit codes of a command that a shell could not execute. */
const NOT_EXECUTED: ReadonlySet<number> = new Set([126, 127]);
/** A command that has not ended by then is read from as it writes. */
const LATE_MS = 50;
/** Commands after one that wrote so much are, at once: a pipe holds little more, and they would wait. */
const MUCH_BYTES = PIPE_BYTES / 2;
/** A shell tells of an end at once; one that somebody has stopped does not. */
const TELL_PATIENCE_MS = 1_000;
const START_MAX_CHARACTERS = 4_096;
const SIGNALLED = 128;
const SIGNALS = new Map(Object.entries(system.signals).map(([name, number]) => [number, name] as const));
const UNKNOWN_END: ChildEnd = { code: null, signal: null };
/** Tried at its start: a death by SIGINT with a line about it, an exit with the same number without one. */
const TRIED = /^[^\n]+\n(?:[^\n]+\n)*e 130\ne 130\nready\n$/;

/**
 * The words of a shell's start; its script comes by its standard input, because one that is given as a word tells each exit in a line,
 * too. Without --norc a shell whose input is a socket
 * obeys a file of its user's.
 */
export function shellCommand(bash: string): readonly string[] {
  return [bash, "--norc", "--noprofile", "-s", SHELL_NAME];
}

/** A command for a shell. */
export interface ShellOrder {
  /** Absolute. */
  readonly program: string;
  readonly args: readonly string[];
  /** Beside the shell's own environment. */
  readonly variables: Readonly<Record<string, string>>;
  readonly input: Uint8Array;
  readonly mayBegin: ChildRequest["mayBegin"];
  readonly counts: Pick<Starter, "countStarted" | "countEnded">;
}

interface Running {
  readonly began: PromiseWithResolvers<number | undefined>;
  readonly ended: PromiseWithResolvers<ShellEnd>;
  /** The shell has said something of its own since it began. */
  isTold: boolean;
}

/** As the shell tells it; undefined when it has died. */
type ShellEnd = { readonly status: number; readonly isTold: boolean } | undefined;

export class SlotShell {
  readonly #shell: Child;
  readonly #channel: Socket;
  readonly #clock: Clock;
  #exported: readonly string[] = [];
  /** The file of its cgroup that names all that are in it; undefined where it has no cgroup. */
  readonly #members: string | undefined;
  /** Called when it can take another command. */
  readonly #onIdle: (shell: SlotShell) => void;
  #text = "";
  #running: Running | undefined;
  /** A command wrote much. */
  #isTalkative = false;
  readonly #room = Buffer.allocUnsafeSlow(PIPE_BYTES);
  #isLost = false;

  constructor(
    shell: Child & { readonly channel: Socket },
    options: {
      readonly members: string | undefined;
      readonly clock: Clock;
      readonly onIdle: (shell: SlotShell) => void;
    },
  ) {
    this.#shell = shell;
    this.#channel = shell.channel;
    this.#members = options.members;
    this.#clock = options.clock;
    this.#onIdle = options.onIdle;
  }

  /** False: this shell does not do what is needed of it. To be called once, first. */
  async isReady(): Promise<boolean> {
    const ready = Promise.withResolvers<boolean>();
    let said = "";
    const listen = (chunk: Buffer): void => {
      said += chunk.toString("latin1");
      if (said.endsWith("ready\n")) ready.resolve(TRIED.test(said));
      else if (said.length > START_MAX_CHARACTERS) ready.resolve(false);
    };
    this.#channel.on("data", listen);
    void this.#shell.exited.then(() => ready.resolve(false));
    this.#shell.stdin.end(SCRIPT);
    const isReady = await ready.promise;
    this.#channel.off("data", listen);
    // It has others by now.
    for (const stream of [this.#shell.stdin, this.#shell.stdout, this.#shell.stderr]) stream.destroy();
    if (!isReady || !this.#hasPipes()) return false;
    this.#channel.on("data", (chunk: Buffer) => this.#hear(chunk.toString("latin1")));
    void this.#shell.exited.then(() => this.#lose());
    return true;
  }

  /** Whether it can take a command: it lives, in a directory that is there. */
  get isUsable(): boolean {
    const directory = processLink(this.#shell.pid, "cwd");
    return !this.#isLost && directory?.endsWith(" (deleted)") === false;
  }

  /** Ends it, and all that is left of what it started. */
  async end(): Promise<void> {
    this.#isLost = true;
    await this.#shell.kill(0);
  }

  /** For one that has nothing else. Never rejects. */
  async launch(order: ShellOrder): Promise<ChildStart> {
    const opened = this.#open();
    if (typeof opened === "string")
      return this.#refuse("exhausted", `its streams cannot be opened: ${opened}`);
    if (order.mayBegin?.() === false) {
      for (const descriptor of opened) closeSync(descriptor);
      return this.#refuse("withheld", "it may not begin");
    }
    const [input, output, errors] = opened;
    const running: Running = {
      began: Promise.withResolvers(),
      ended: Promise.withResolvers(),
      isTold: false,
    };
    this.#running = running;
    const text = textOf(order, this.#exported);
    this.#exported = Object.keys(order.variables);
    this.#channel.write(`${text.length}\n${text}`);
    const stdin = give(input, order.input);
    const pid = await running.began.promise;
    if (pid === undefined) {
      for (const descriptor of [output, errors]) closeSync(descriptor);
      stdin.destroy();
      await this.end();
      return this.#refuse("exhausted", "the shell that starts it has died");
    }
    return { kind: "started", child: this.#child(pid, { stdin, output, errors }, running, order.counts) };
  }

  #refuse(kind: "exhausted" | "withheld", reason: string): ChildStart {
    if (!this.#isLost) this.#onIdle(this);
    return { kind: "failed", failure: { kind, reason } };
  }

  #child(
    pid: number,
    streams: { readonly stdin: Writable; readonly output: number; readonly errors: number },
    running: Running,
    counts: ShellOrder["counts"],
  ): Child {
    const { stdin } = streams;
    // Not before now: a pipe that nobody has open for writing looks as if it had ended.
    const [stdout, stderr] = [new PipeOutput(streams.output), new PipeOutput(streams.errors)];
    const late = this.#followLate([stdout, stderr]);
    counts.countStarted();
    const group = new ChildGroup(pid, this.#clock);
    let [isClean, hasExited] = [false, false];
    const exited = running.ended.promise.then((told): ChildEnd => {
      hasExited = true;
      late?.cancel();
      for (const output of [stdout, stderr]) output.finish(this.#room);
      this.#isTalkative ||= Math.max(stdout.bytes, stderr.bytes) >= MUCH_BYTES;
      const isAlone = told === undefined ? undefined : this.#isAlone();
      if (isAlone === true) group.nothingIsLeft();
      else group.leaderExited();
      isClean = told !== undefined && group.isGone && isAlone !== false;
      stdin.destroy();
      const end = this.#endOf(told);
      counts.countEnded(end);
      return end;
    });
    const isUnbegun = async (): Promise<boolean> => {
      const { code } = await exited;
      return code !== null && NOT_EXECUTED.has(code) && stderr.firstBytes?.indexOf(`${SHELL_NAME}: `) === 0;
    };
    let gone: Promise<void> | undefined;
    const settle = async (): Promise<void> => {
      if (!hasExited) await isDoneWithin(this.#clock, TELL_PATIENCE_MS, exited);
      // Somebody has a stream of it who is not to be found any more.
      if (isClean && stdout.closed && stderr.closed) this.#onIdle(this);
      else await this.end();
    };
    const kill = (graceMs: number): Promise<void> => {
      const ended = group.end(graceMs);
      gone ??= ended.then(settle);
      return gone;
    };
    return { pid, stdin, stdout, stderr, channel: undefined, exited, kill, isUnbegun };
  }

  #followLate(outputs: readonly PipeOutput[]): Timer | undefined {
    const follow = (): void => {
      for (const output of outputs) output.follow();
    };
    if (!this.#isTalkative) return this.#clock.after(LATE_MS, follow, { background: true });
    follow();
    return undefined;
  }

  #endOf(told: ShellEnd): ChildEnd {
    if (told === undefined) return UNKNOWN_END;
    const { status, isTold } = told;
    if (!isTold) return { code: status, signal: null };
    const signal = SIGNALS.get(status - SIGNALLED) as NodeJS.Signals | undefined;
    return signal === undefined ? UNKNOWN_END : { code: null, signal };
  }

  /** The worker's ends of the pipes of the next command; why not. */
  #open(): readonly [number, number, number] | string {
    const opened: number[] = [];
    try {
      const open = (descriptor: number, flags: number): number => {
        const file = openSync(`/proc/${this.#shell.pid}/fd/${descriptor}`, flags | constants.O_NONBLOCK);
        opened.push(file);
        return file;
      };
      return [
        open(INPUT, constants.O_WRONLY),
        open(OUTPUT, constants.O_RDONLY),
        open(ERRORS, constants.O_RDONLY),
      ];
    } catch (error) {
      for (const descriptor of opened) closeSync(descriptor);
      return errnoOf(error) ?? String(error);
    }
  }

  #hasPipes(): boolean {
    return [INPUT, OUTPUT, ERRORS].every((descriptor) =>
      processLink(this.#shell.pid, `fd/${descriptor}`)?.startsWith("pipe:"),
    );
  }

  /** Whether its cgroup has nobody else; undefined where it has no cgroup. */
  #isAlone(): boolean | undefined {
    if (this.#members === undefined) return undefined;
    try {
      return readFileSync(this.#members, "latin1") === `${this.#shell.pid}\n`;
    } catch {
      return false;
    }
  }

  #hear(chunk: string): void {
    const lines = (this.#text + chunk).split("\n");
    this.#text = lines.pop() ?? "";
    for (const line of lines) this.#take(line);
  }

  #take(line: string): void {
    const running = this.#running;
    const [, kind, number] = /^([se]) (\d+)$/.exec(line) ?? [];
    if (running === undefined) return;
    if (kind === "s") {
      running.isTold = false;
      running.began.resolve(Number(number));
    } else if (kind === "e") {
      this.#running = undefined;
      running.began.resolve(undefined);
      running.ended.resolve({ status: Number(number), isTold: running.isTold });
    } else running.isTold = true;
  }

  #lose(): void {
    this.#isLost = true;
    this.#running?.began.resolve(undefined);
    this.#running?.ended.resolve(undefined);
  }
}

/** Writes it all there and closes it, at once where the pipe has room for it. */
function give(descriptor: number, input: Uint8Array): Writable {
  const written = writtenAtOnce(descriptor, input);
  if (written === input.length) {
    closeSync(descriptor);
    return new Writable().destroy();
  }
  const stream = new Socket({ fd: descriptor, readable: false, writable: true });
  // Its reader has gone.
  stream.on("error", () => undefined);
  return stream.end(input.subarray(written));
}

function writtenAtOnce(descriptor: number, input: Uint8Array): number {
  try {
    return input.length === 0 ? 0 : writeSync(descriptor, input);
  } catch {
    return 0;
  }
}

/** `exported`: variables of the command before, of which this one may lack some: those of a key. */
function textOf({ program, args, variables }: ShellOrder, exported: readonly string[]): string {
  const gone = exported.filter((name) => !(name in variables)).map((name) => `;unset ${name}`);
  const set = Object.entries(variables).map(([name, value]) => `;export ${name}=${quoted(value)}`);
  return `_rollout_w=(${[program, ...args].map(quoted).join(" ")})${gone.join("")}${set.join("")}`;
}

const PLAIN = /^[\w@%+=:,./-]+$/;

/** Characters of ASCII that bash reads as these bytes and nothing else. */
function quoted(word: string): string {
  if (PLAIN.test(word)) return `'${word}'`;
  const bytes = Buffer.from(word, "utf8");
  let text = "";
  for (const byte of bytes) {
    const character = String.fromCharCode(byte);
    text += /[\w @%+=:,./-]/.test(character) ? character : `\\x${byte.toString(16).padStart(2, "0")}`;
  }
  return `$'${text}'`;
}
