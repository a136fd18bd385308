// The script that a host is given on the standard input of `sh`, and what it answers between two marks.
//
// Keeps true: it is one function that is called on its last line with a word that is compared, so a script that was cut runs nothing; what is
// secret stands in it alone, and in files that only the account may read; only a process whose start was written down is signalled.

/** A question to a host, and the directory that it is about. */
export type HostTask = { readonly place: HostPlace } & HostRequest;

export type HostRequest =
  | { readonly verb: "launch"; readonly start: WorkerStart }
  | { readonly verb: "stop"; readonly allocation: string; readonly force: boolean }
  | { readonly verb: "log"; readonly allocation: string }
  | { readonly verb: "check"; readonly program: HostProgram }
  | { readonly verb: "list" | "clear" };

export interface HostPlace {
  /** Where workers start: a path from where a login begins, or an absolute one; empty: there. */
  readonly directory: string;
  /** A name of run, store, fleet and host. */
  readonly name: string;
}

export interface HostProgram {
  /** Words, as a shell reads them. */
  readonly program: string;
  readonly environment: Readonly<Record<string, string>>;
}

export interface WorkerStart extends HostProgram {
  readonly allocation: string;
  /** 0: as many as the host has cores. */
  readonly slots: number;
  /** Further words for the worker. */
  readonly words: readonly string[];
  /** A secret. */
  readonly bundle: string | null;
  /** The text of a manifest of a plugin. */
  readonly manifest: string | undefined;
  readonly coordinators: readonly string[];
  /** At which the host reaches the coordinator through a tunnel; undefined where there is none. */
  readonly port: number | undefined;
}

/** `refused`: the script says no, in its text. */
export interface HostAnswer {
  readonly kind: "done" | "refused";
  readonly text: string;
}

/** Said by a host that has another worker of the fleet. */
export const BUSY = "busy";

/** The words behind a host's name, by which it says that it is ready for the script. */
export function helloOf(nonce: string): { readonly command: string; readonly line: string } {
  const line = `rollout-${nonce}`;
  return { command: `echo ${line}; exec sh -s`, line };
}

export function scriptOf(task: HostTask, nonce: string): string {
  const { directory, name } = task.place;
  return `rollout_host() {
[ "$1" = ${quoted(nonce)} ] || exit 65
umask 077
home=${quoted(directory)} name=${quoted(name)}
${answerFunction(task)}
echo rollout-${nonce}-begin
(answer)
printf '\\n%s %s\\n' rollout-${nonce}-end "$?"
}
rollout_host ${quoted(nonce)}
`;
}

/** Undefined: it is no whole answer. */
export function answerIn(stdout: string, nonce: string): HostAnswer | undefined {
  const begin = `rollout-${nonce}-begin\n`;
  const at = stdout.indexOf(begin);
  if (at < 0) return undefined;
  const from = at + begin.length;
  const end = stdout.indexOf(`\nrollout-${nonce}-end `, from);
  const [, code] = (end < 0 ? null : /^\n\S+ (\d+)\n/.exec(stdout.slice(end))) ?? [];
  return code === undefined
    ? undefined
    : { kind: code === "0" ? "done" : "refused", text: stdout.slice(from, end) };
}

/** One word of a shell, whatever is in it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function answerFunction(task: HostTask): string {
  switch (task.verb) {
    case "launch":
      return launchFunction(task.start, task.place);
    case "stop":
      return `allocation=${quoted(task.allocation)} force=${task.force ? "1" : ""}\n${COMMON}${KILL}${STOP}`;
    case "log":
      return `allocation=${quoted(task.allocation)}\n${COMMON}${LOG}`;
    case "check":
      return `${COMMON}${CHECK}${programFunction(task.program)}`;
    case "list":
      return `${COMMON}${LIST}`;
    case "clear":
      return `${COMMON}${KILL}${CLEAR}`;
  }
}

/**
 * A process by its id, when it started, and the start of the machine: ids are given again. Behind the name in /proc/PID/stat field 1 is the
 * state and field 20 the start.
 */
const COMMON = `
case $home in
'') base=$PWD ;;
/*) base=$home ;;
*) base=$PWD/$home ;;
esac
place=$base/.rollout/fleet/$name
one=$place/\${allocation:-none}
read -r boot </proc/sys/kernel/random/boot_id
started() {
  stat=
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null
  set -- \${stat##*) }
  start=
  [ "\${1:-Z}" = Z ] || start=\${20}
}
lives() {
  [ -s "$1" ] && read -r pid at since <"$1" || return 1
  [ "$since" = "$boot" ] && [ -n "$at" ] || return 1
  started "$pid"
  [ "$start" = "$at" ]
}
is_there() { lives "$1/worker" || lives "$1/keeper"; }
# Nothing secret is left of one that is over, and its log for a while.
bury() {
  rm -rf "$1/bundle.pem" "$1/keep" "$1"/*.toml "$1/port" "$1/state"
  [ ! -d "$1" ] || [ -e "$1/ended" ] || : >"$1/ended"
}
tidy() {
  rmdir "$place" "$base/.rollout/fleet" "$base/.rollout" 2>/dev/null
  return 0
}
`;

/**
 * The keeper leads a session of its own, which outlives the login: it has the worker as its child, hands signals on, and clears up. All of it
 * is read before it runs, so that its file, which may have secrets, goes at once.
 */
const KEEP = `
rm -f "$one/keep"
note() {
  started "$1"
  printf '%s %s %s\\n' "$1" "$start" "$boot" >"$2.new" && mv "$2.new" "$2"
}
cd -- "$base" || exit 1
[ -n "$slots" ] || slots=$(getconf _NPROCESSORS_ONLN)
[ -z "$coordinators" ] || set -- --coordinator-addr "$coordinators" "$@"
# With a manifest from the coordinator, a configuration that lies here is of something else.
if [ -e "$one/plugin.toml" ]; then
  : >"$one/rollout.toml"
  set -- --config "$one/rollout.toml" --plugin "$one/plugin.toml" "$@"
fi
[ ! -e "$one/bundle.pem" ] || set -- --enrolment "$one/bundle.pem" "$@"
set -- worker run --worker-id "$allocation" --state-dir "$one/state" --slots "$slots" "$@"
eval "$program \\"\\$@\\" &"
worker=$!
trap 'kill -s TERM "$worker" 2>/dev/null' TERM
note "$worker" "$one/worker"
note "$$" "$one/keeper"
while :; do
  wait "$worker"
  code=$?
  lives "$one/worker" || break
done
if [ "$code" = 0 ]; then
  rm -rf "$one"
  tidy
else
  bury "$one"
fi
`;

const LAUNCH = `
answer() {
  mkdir -p -- "$base" && cd -- "$base" || { echo "the directory $base cannot be used"; return 1; }
  if [ ! -d "$one" ]; then
    for each in "$place"/*; do
      if is_there "$each"; then echo "${BUSY} \${each##*/}"; return 1; fi
    done
  fi
  find_program || return 1
  # The same allocation again: its worker was started, or never will be. The last one that was here may be clearing up.
  made=
  for try in 1 2 3; do
    mkdir -p "$place" && mkdir "$one" 2>/dev/null && made=1 && break
    [ ! -d "$one" ] || break
  done
  [ -d "$one" ] || { echo "the directory $one cannot be made"; return 1; }
  if [ -n "$made" ]; then
    write_files
    setsid sh "$one/keep" "$base" </dev/null >"$one/log" 2>&1 &
    # Until it has a session of its own it would end together with this one.
    for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
      [ -d "$one" ] && [ ! -e "$one/keeper" ] && kill -0 "$!" 2>/dev/null || break
      sleep 0.05 2>/dev/null || sleep 1
    done
  fi
  echo "launched $(cat "$one/port" 2>/dev/null)"
}
`;

function launchFunction(start: WorkerStart, place: HostPlace): string {
  const { allocation, slots, bundle, manifest, port, coordinators, words, program } = start;
  const allocated = `allocation=${quoted(allocation)}`;
  const keeper = [
    "keep() {",
    `home=$1 name=${quoted(place.name)} ${allocated} slots=${slots === 0 ? "" : slots}`,
    `coordinators=${quoted(coordinators.join(","))} program=${quoted(program)}`,
    COMMON,
    ["set --", ...words.map(quoted)].join(" "),
    `${KEEP}}`,
    'keep "$@"',
    "",
  ].join("\n");
  const files = Object.entries({
    "bundle.pem": bundle ?? undefined,
    "plugin.toml": manifest,
    port: port?.toString(),
    keep: keeper,
  }).flatMap(([name, text]) => (text === undefined ? [] : [`printf '%s' ${quoted(text)} >"$one/${name}"`]));
  return `${allocated}
${COMMON}${LAUNCH}
write_files() {
${files.join("\n")}
}
${programFunction(start)}`;
}

/** Sets the environment of the program, and says what is missing. */
function programFunction({ program, environment }: HostProgram): string {
  const exports = Object.entries(environment).map(([name, value]) => `export ${name}=${quoted(value)}`);
  return `find_program() {
${exports.join("\n")}
eval "set -- "${quoted(program)} || return 1
command -v "$1" >/dev/null 2>&1 || { echo "there is no program $1; its PATH is $PATH"; return 1; }
command -v setsid >/dev/null 2>&1 || { echo "there is no program setsid"; return 1; }
if [ -n "\${asks_version:-}" ]; then
  version=$("$@" --version 2>&1 </dev/null) || { echo "$version"; return 1; }
  echo "$version" | head -n 1
fi
}`;
}

/** An ended one is forgotten after an hour, and one that has never got a process after five minutes. */
const LIST = `
answer() {
  for each in "$place"/*; do
    [ -d "$each" ] || continue
    if is_there "$each"; then
      echo "\${each##*/} running $(cat "$each/port" 2>/dev/null)"
    elif [ -e "$each/keeper" ] || [ -e "$each/ended" ]; then
      bury "$each"
      if [ -n "$(find "$each/ended" -mmin +60 2>/dev/null)" ]; then
        rm -rf "$each"
      else
        echo "\${each##*/} ended"
      fi
    elif [ -n "$(find "$each" -prune -mmin +5 2>/dev/null)" ]; then
      rm -rf "$each"
    fi
  done
  tidy
}
`;

/** The keeper leads the group that the worker is in. */
const KILL = `
kill_one() {
  if lives "$1/keeper"; then kill -s KILL -- "-$pid"; fi
  if lives "$1/worker"; then kill -s KILL "$pid"; fi
}
`;

const STOP = `
answer() {
  [ -d "$one" ] || return 0
  if [ -n "$force" ]; then
    kill_one "$one"
    bury "$one"
  elif lives "$one/worker" || lives "$one/keeper"; then
    kill -s TERM "$pid"
  elif [ -e "$one/keeper" ]; then
    bury "$one"
  fi
}
`;

const LOG = `
answer() {
  tail -c 16384 "$one/log" 2>/dev/null
  return 0
}
`;

const CHECK = `
answer() {
  [ ! -d "$base" ] || cd -- "$base" || return 1
  asks_version=1
  find_program
}
`;

/** Nothing is left of all that the fleet has there. */
const CLEAR = `
answer() {
  # A store may be any: the name is a pattern.
  for place in "$base/.rollout/fleet"/$name; do
    for each in "$place"/*; do kill_one "$each"; done
    rm -rf "$place"
  done
  tidy
}
`;
