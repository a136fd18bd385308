// The shells of a worker that start its commands, as many as commands run at once, and which commands they can start. The rest
// is started by the host as it starts anything else, which is slower and tells the reason of a failure.
//
// Keeps true: a command has the same streams, environment and group whichever way it was started.
import { open } from "node:fs/promises";
import { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import type { Child, ChildRequest, ChildStart } from "./child.ts";
import type { Starter } from "./starter.ts";
import { shellCommand, SlotShell } from "./slot-shell.ts";

export interface LauncherOptions {
  readonly clock: Clock;
  /** Starts a child the other way. */
  readonly start: (program: string, request: ChildRequest) => Promise<ChildStart>;
  /** The file that names who is in the cgroup of a child; undefined when it has none. */
  readonly membersOf: (child: Child) => string | undefined;
  readonly counts: Pick<Starter, "countStarted" | "countEnded">;
}

type LaunchRequest = ChildRequest & { readonly input: Uint8Array };

const BASH = "/bin/bash";
/** A shell reads its orders character by character, or nearly: longer ones are for the other way. */
const ORDER_MAX_CHARACTERS = 4_096;
/** Variables that bash sets, obeys or swallows: a command is to have them as they are. */
const BASH_HAS =
  /^(?:BASH.*|SHELLOPTS|ENV|POSIXLY_CORRECT|IFS|TMOUT|S?RANDOM|SECONDS|LINENO|PPID|E?UID|GROUPS|DIRSTACK|FUNCNAME|PIPESTATUS|HIST.*|EPOCH.*|OPT(?:IND|ARG|ERR)|COMP_.*|COLUMNS|LINES|COPROC|MAPFILE|REPLY|CHILD_MAX|EXECIGNORE|GLOBIGNORE|_rollout_.*)$/;
const NAME = /^[A-Za-z_]\w*$/;

export class Launcher {
  readonly #options: LauncherOptions;
  /** Shells that have nothing to do, by what they have been started with. */
  readonly #idle = new Map<string, SlotShell[]>();
  /** The key that shells of an environment are kept under; undefined for one that a shell would not pass on as it is. */
  readonly #keys = new WeakMap<object, string | undefined>();
  /** Files that the system executes, and no shell reads. */
  readonly #executable = new Map<string, boolean>();
  /** The shell of this machine is not there, or not what is needed. */
  #isOff = false;

  constructor(options: LauncherOptions) {
    this.#options = options;
  }

  /** Undefined: it has to be started the other way. `program` is absolute. Never rejects. */
  async launch(program: string, request: LaunchRequest): Promise<ChildStart | undefined> {
    const key = this.#isOff ? undefined : this.#keyOf(request);
    if (key === undefined || !isShort(request) || !(await this.#isExecutable(program))) return undefined;
    const shell = this.#take(key) ?? (await this.#begin(key, request));
    return shell?.launch({
      program,
      args: request.command.slice(1),
      variables: request.variables ?? {},
      input: request.input,
      mayBegin: request.mayBegin,
      counts: this.#options.counts,
    });
  }

  #take(key: string): SlotShell | undefined {
    const idle = this.#idle.get(key) ?? [];
    for (let shell = idle.pop(); shell !== undefined; shell = idle.pop()) {
      if (shell.isUsable) return shell;
      void shell.end();
    }
    return undefined;
  }

  /** Undefined: with a shell it cannot be, for now or at all. */
  async #begin(key: string, { cwd, env }: LaunchRequest): Promise<SlotShell | undefined> {
    const { start, membersOf, clock } = this.#options;
    const command = shellCommand(BASH);
    const started = await start(BASH, { command, cwd, env, channel: true });
    if (started.kind === "failed") return undefined;
    const { child } = started;
    const { channel } = child;
    if (!(channel instanceof Socket)) return undefined;
    const onIdle = (idle: SlotShell): void => void this.#idle.get(key)?.push(idle);
    const shell = new SlotShell({ ...child, channel }, { members: membersOf(child), clock, onIdle });
    if (await shell.isReady()) {
      if (!this.#idle.has(key)) this.#idle.set(key, []);
      return shell;
    }
    this.#isOff = true;
    await shell.end();
    return undefined;
  }

  #keyOf({ cwd, env }: LaunchRequest): string | undefined {
    if (!this.#keys.has(env)) {
      const isPassedOn = Object.keys(env).every((name) => NAME.test(name) && !BASH_HAS.test(name));
      this.#keys.set(env, isPassedOn ? JSON.stringify([cwd, env]) : undefined);
    }
    return this.#keys.get(env);
  }

  async #isExecutable(program: string): Promise<boolean> {
    const known = this.#executable.get(program);
    if (known !== undefined) return known;
    const is = await startsAsProgram(program).catch(() => false);
    if (this.#executable.size >= PROGRAMS_MAX) this.#executable.clear();
    this.#executable.set(program, is);
    return is;
  }
}

/** Programs that are remembered; a command whose first word comes from its items has many. */
const PROGRAMS_MAX = 64;
const ELF = Buffer.from("\x7fELF", "latin1");
const INTERPRETED = Buffer.from("#!", "latin1");

/** A shell reads what the system does not execute as a script of its own. */
async function startsAsProgram(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { buffer } = await file.read(Buffer.alloc(ELF.length), 0, ELF.length, 0);
    return buffer.equals(ELF) || buffer.subarray(0, INTERPRETED.length).equals(INTERPRETED);
  } finally {
    await file.close();
  }
}

function isShort({ command, variables = {} }: ChildRequest): boolean {
  const texts = [...command, ...Object.values(variables)];
  if (texts.some((text) => text.includes("\0"))) return false;
  return texts.reduce((sum, text) => sum + text.length, 0) <= ORDER_MAX_CHARACTERS;
}
