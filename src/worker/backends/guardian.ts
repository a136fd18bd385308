// The process that outlives its worker by a moment: it knows the groups of the children that live, and kills them when its
// standard input ends, which a worker's death does, however it dies. A shell that waits: a megabyte, and no program of its own.
//
// Keeps true: what `watch` has resolved for is killed when the worker dies; a guardian that dies is replaced.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import type { Clock, Timer } from "../../base/clock.ts";
import { describeError } from "../../base/errors.ts";
import type { Logger } from "../../observe/log.ts";
import type { GroupName } from "./child-records.ts";

/**
 * Reads `+ PID START` and `- PID START`. At the end of its input it kills each group whose leader is still the one that was named or
 * has ended, and then whatever is left of their sessions. START is field 22 of /proc/PID/stat; without /proc it is not looked at.
 */
const SCRIPT = `
trap '' HUP INT TERM QUIT
groups=' '
while read -r what pid start; do
  group=$pid:$start
  case $what in
    +) case $groups in *" $group "*) ;; *) groups="$groups$group " ;; esac ;;
    -) case $groups in *" $group "*) groups="\${groups%%" $group "*} \${groups#*" $group "}" ;; esac ;;
  esac
done
stat_of() {
  state= session= start=
  if read -r line < "/proc/$1/stat"; then
    set -- \${line##*) }
    state=$1 session=$4
    shift 19
    start=$1
  fi
}
ours=' '
for group in $groups; do
  pid=\${group%%:*}
  stat_of "$pid"
  [ -z "$start" ] || [ "$start" = "\${group#*:}" ] || continue
  kill -9 "-$pid"
  ours="$ours$pid "
done
[ "$ours" = ' ' ] && exit
for round in 1 2 3 4 5 6 7 8 9 10; do
  left=
  for directory in /proc/[0-9]*; do
    pid=\${directory#/proc/}
    stat_of "$pid"
    case $ours in
      *" $session "*) [ "$state" = Z ] || { kill -9 "$pid"; left=1; } ;;
    esac
  done
  [ -n "$left" ] || exit
  sleep 0.05
done
`;

/** A guardian that was killed is replaced this much later, if nothing asks for one before. */
const REPLACE_AFTER_MS = 100;
/** How often a message is tried on guardians that die. */
const TRIES = 3;

export interface GuardianOptions {
  readonly clock: Clock;
  readonly log: Logger;
}

export class Guardian {
  readonly #options: GuardianOptions;
  /** What it is to kill, as it is told of it. */
  readonly #groups = new Set<string>();
  #process: ChildProcess | undefined;
  #replacement: Timer | undefined;
  #isClosed = false;

  /** The process is started with the first group. */
  constructor(options: GuardianOptions) {
    this.#options = options;
  }

  /** Undefined before the first group, and between one guardian and the next. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Resolves when it will kill the group, if this worker dies: false when there can be no guardian at this moment. */
  async watch(group: GroupName): Promise<boolean> {
    const name = nameOf(group);
    this.#groups.add(name);
    for (let attempt = 0; attempt < TRIES; attempt++) if (await this.#say(`+ ${name}\n`)) return true;
    this.#groups.delete(name);
    return false;
  }

  /** Nothing is left of it. */
  forget(group: GroupName): void {
    const name = nameOf(group);
    if (this.#groups.delete(name) && this.#process !== undefined) void this.#say(`- ${name}\n`);
  }

  /** It kills what it has not been told to forget, and ends. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#replacement?.cancel();
    this.#process?.stdin?.end();
  }

  /** False when it died first. */
  #say(line: string): Promise<boolean> {
    const stdin = this.#start();
    return new Promise((resolve) => {
      if (stdin === undefined || stdin === null) resolve(false);
      else stdin.write(line, (error) => resolve(error === undefined || error === null));
    });
  }

  /** A new one is told of every group first. */
  #start(): ChildProcess["stdin"] | undefined {
    if (this.#process !== undefined) return this.#process.stdin;
    this.#replacement?.cancel();
    let started: ChildProcess;
    try {
      started = spawn("/bin/sh", ["-c", SCRIPT, "rollout-guardian"], {
        // In a session of its own: what ends the worker's, Ctrl-C for one, is not to end it. It holds no directory.
        detached: true,
        cwd: "/",
        stdio: ["pipe", "ignore", "ignore"],
      });
    } catch (error) {
      this.#options.log.error(`there is no guardian for children: ${describeError(error)}`);
      return undefined;
    }
    this.#process = started;
    // It is not waited for: it ends when this process does.
    started.unref();
    started.stdin?.on("error", () => this.#lost(started));
    started.once("error", () => this.#lost(started));
    started.once("exit", () => this.#lost(started));
    for (const group of this.#groups) started.stdin?.write(`+ ${group}\n`);
    return started.stdin;
  }

  #lost(lost: ChildProcess): void {
    if (this.#process !== lost) return;
    this.#process = undefined;
    lost.stdin?.destroy();
    if (this.#isClosed || this.#groups.size === 0) return;
    this.#options.log.warn("the guardian of the children has died; another takes its place");
    this.#replacement = this.#options.clock.after(REPLACE_AFTER_MS, () => void this.#start(), {
      background: true,
    });
  }
}

function nameOf({ pid, startedAt }: GroupName): string {
  return `${pid} ${startedAt}`;
}
