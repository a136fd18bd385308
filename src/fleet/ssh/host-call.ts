// One login: the system's `ssh`, which gives a host a script and brings its answer.
//
// Keeps true: nobody is asked for anything, no key of a host is taken over that is not known, nothing of the user's ssh_config that would share
// a connection or forward a port is used; what could not be told a host has not been done there.
import type { Clock } from "../../base/clock.ts";
import type { Gate } from "../../base/gate.ts";
import type { Random } from "../../base/random.ts";
import { printable, redactSecrets } from "../../base/safe-text.ts";
import { runBounded } from "../bounded-child.ts";
import type { BoundedOutcome } from "../bounded-child.ts";
import { answerIn, helloOf, scriptOf } from "./host-script.ts";
import type { HostAnswer, HostTask } from "./host-script.ts";

export interface HostCallOptions {
  /** The client and the user's words for it, which go before ours. */
  readonly client: readonly [string, ...string[]];
  /** Where it runs: the directory of the configuration. */
  readonly directory: string;
  readonly timeLimitMs: number;
  /** Logins at once, of all fleets: hosts may be one machine by several names, or behind one. */
  readonly logins: Gate;
  readonly clock: Clock;
  readonly random: Random;
}

export type HostOutcome =
  | HostAnswer
  /** It was told nothing, and has done nothing. */
  | { readonly kind: "untold"; readonly reason: string }
  | { readonly kind: "unknown"; readonly reason: string };

const NONCE_BYTES = 12;
const OUTPUT_BYTES_MAX = 4 * 2 ** 20;
const REASON_CHARS_MAX = 500;
const COMMON_OPTIONS = [
  ...["BatchMode=yes", "StrictHostKeyChecking=yes", "ConnectTimeout=10"],
  ...["ServerAliveInterval=5", "ServerAliveCountMax=3", "ControlMaster=no", "ControlPath=none"],
  ...["ForwardAgent=no", "ForwardX11=no", "PermitLocalCommand=no", "RemoteCommand=none", "RequestTTY=no"],
];
/** Words of the client, and what a person does about them. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/host key|REMOTE HOST IDENTIFICATION/i, "connect to it once by hand, or put its key into known_hosts"],
  [/permission denied/i, "its account has to take a key of yours that asks for no passphrase"],
  [/remote port forwarding failed/i, "its sshd has to allow it: AllowTcpForwarding, PermitListen"],
];

/** The whole command line of a login there: words of the user's, then ours, of which ssh takes the first of each. */
export function loginWords(
  client: readonly [string, ...string[]],
  host: string,
  remote: { readonly command: string; readonly options: readonly string[] },
): readonly [string, ...string[]] {
  const options = [...COMMON_OPTIONS, ...remote.options].flatMap((option) => ["-o", option]);
  return [...client, ...options, "--", host, remote.command];
}

export async function callHost(
  { client, directory, timeLimitMs, logins, clock, random }: HostCallOptions,
  host: string,
  task: HostTask,
): Promise<HostOutcome> {
  const nonce = newNonce(random);
  const { command, line } = helloOf(nonce);
  const options = ["ClearAllForwardings=yes", "LogLevel=ERROR"];
  const request = {
    ...{ command: loginWords(client, host, { command, options }), directory, timeLimitMs },
    ...{ input: scriptOf(task, nonce), inputAfter: line, outputBytesMax: OUTPUT_BYTES_MAX },
  };
  const outcome = await logins(() => runBounded(request, clock));
  const answer = outcome.kind === "exited" ? answerIn(outcome.stdout, nonce) : undefined;
  if (answer !== undefined) return answer;
  const reason = `${host}: ${wordsOf(outcome)}`;
  const wasTold = outcome.kind !== "unstarted" && outcome.isTold;
  return { kind: wasTold ? "unknown" : "untold", reason };
}

export function newNonce(random: Random): string {
  return Buffer.from(random.bytes(NONCE_BYTES)).toString("hex");
}

/** In one line, with what a person may do about it. */
export function reasonOf(text: string, otherwise: string): string {
  const words = printable(redactSecrets(text.trim()).replaceAll(/\s*\n\s*/g, "; ")).slice(-REASON_CHARS_MAX);
  const [, advice] = ADVICE.find(([pattern]) => pattern.test(words)) ?? [];
  return (words === "" ? otherwise : words) + (advice === undefined ? "" : ` (${advice})`);
}

function wordsOf(outcome: BoundedOutcome): string {
  if (outcome.kind === "unstarted") return outcome.reason;
  if (outcome.kind === "killed") return `${outcome.reason}${after(reasonOf(outcome.stderr, ""))}`;
  const what = outcome.isTold ? "its answer is not whole" : "its login runs no command";
  return reasonOf(outcome.stderr, `${what}; ssh exited with ${outcome.code}`);
}

function after(words: string): string {
  return words === "" ? "" : `: ${words}`;
}
