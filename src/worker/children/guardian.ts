// The process that outlives its worker by a moment: it knows the groups of the children that live, and kills them when its
// standard input ends, which a worker's death does, however it dies. A shell that waits: a megabyte, and no program of its own.
//
// Keeps true: what `watch` has resolved for is killed when the worker dies; a guardian that dies is replaced.
import type { Socket } from "node:net";
import type { Clock, Timer } from "../../base/clock.ts";
import type { Logger } from "../../observe/log.ts";
import type { GroupName } from "./child-group.ts";
import type { Starter } from "./starter.ts";

/**
 * Reads `+ PID START` and `- PID START`. At the end of its input it kills each group whose leader is still the one that was named or
 * has ended with its cgroup, and then all that is left of their sessions. $1: below which cgroups are. START is field 22 of
 * /proc/PID/stat; without /proc it is not looked at.
 */
const SCRIPT = `
trap '' HUP INT TERM QUIT
base=$1
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
cgroups=
for group in $groups; do
  pid=\${group%%:*}
  cgroup=$base/rollout-$pid-\${group#*:}
  [ -n "$base" ] && [ -d "$cgroup" ] && echo 1 > "$cgroup/cgroup.kill" && cgroups="$cgroups$cgroup
"
  stat_of "$pid"
  [ -z "$start" ] || [ "$start" = "\${group#*:}" ] || continue
  kill -9 "-$pid"
  ours="$ours$pid "
done
[ "$ours" = ' ' ] && [ -z "$cgroups" ] && exit
for round in 1 2 3 4 5 6 7 8 9 10; do
  left=
  [ -n "$cgroups" ] && printf %s "$cgroups" | {
    while read -r cgroup; do
      [ ! -d "$cgroup" ] || rmdir "$cgroup" || exit 1
    done
  } || [ -z "$cgroups" ] || left=1
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
  readonly starter: Starter;
  /** Below which children have cgroups, where they have. */
  readonly cgroupBase?: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A guardian that lives. */
interface Living {
  readonly pid: number;
  readonly stdin: Socket;
}

export class Guardian {
  readonly #options: GuardianOptions;
  /** The groups that it is to kill, as it is told of them. */
  readonly #groups = new Set<string>();
  #living: Living | undefined;
  /** One that is on its way. */
  #starting: Promise<Living | undefined> | undefined;
  #replacement: Timer | undefined;
  #isClosed = false;

  /** The process is started with the first group. */
  constructor(options: GuardianOptions) {
    this.#options = options;
  }

  /** Undefined before the first group, and between one guardian and the next. */
  get pid(): number | undefined {
    return this.#living?.pid;
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
    if (this.#groups.delete(name)) this.#living?.stdin.write(`- ${name}\n`);
  }

  /** It kills what it has not been told to forget, and ends. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#replacement?.cancel();
    this.#living?.stdin.end();
  }

  /** False when it died first. */
  async #say(line: string): Promise<boolean> {
    const living = this.#living ?? (await this.#start());
    if (living === undefined || this.#isClosed) return false;
    return new Promise((resolve) => {
      living.stdin.write(line, (error) => resolve(error === undefined || error === null));
    });
  }

  #start(): Promise<Living | undefined> {
    this.#starting ??= this.#startOne().finally(() => (this.#starting = undefined));
    return this.#starting;
  }

  /** A new one is told of every group first. */
  async #startOne(): Promise<Living | undefined> {
    this.#replacement?.cancel();
    const { starter, log } = this.#options;
    const start = await starter.start({
      file: "/bin/sh",
      args: ["-c", SCRIPT, "rollout-guardian", this.#options.cgroupBase ?? ""],
      // It holds no directory.
      cwd: "/",
      env: { PATH: "/usr/bin:/bin" },
      streams: ["pipe", "ignore", "ignore"],
    });
    const [stdin] = start.kind === "started" ? start.process.streams : [];
    if (start.kind === "failed" || stdin === undefined) {
      if (start.kind === "failed") log.error(`there is no guardian for children: ${start.failure.message}`);
      return undefined;
    }
    const { pid, exited } = start.process;
    const living = (this.#living = { pid, stdin });
    stdin.on("error", () => this.#lost(living));
    void exited.then(() => this.#lost(living));
    for (const group of this.#groups) stdin.write(`+ ${group}\n`);
    if (this.#isClosed) stdin.end();
    return living;
  }

  #lost(lost: Living): void {
    if (this.#living !== lost) return;
    this.#living = undefined;
    lost.stdin.destroy();
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
