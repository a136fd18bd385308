// A program of the user's as a provider: `command VERB`, JSON on its standard input and output. docs/fleet.md has the protocol.
import type { Clock } from "../../base/clock.ts";
import { printable, redactSecrets } from "../../base/safe-text.ts";
import type { Logger } from "../../observe/log.ts";
import { runBounded } from "../bounded-child.ts";
import type { BoundedOutcome } from "../bounded-child.ts";
import { LOG_BYTES_MAX } from "../provider.ts";
import type {
  AllocationName,
  Checked,
  FleetLabels,
  FoundLog,
  LaunchRequest,
  Launched,
  ListedAllocation,
  Listing,
  Provider,
  Stopped,
  StopRequest,
} from "../provider.ts";

export interface ExecOptions {
  readonly command: readonly [string, ...string[]];
  /** Where it runs: the directory of the configuration. */
  readonly directory: string;
  readonly timeLimitMs: number;
  /** Whether it is the form of an allocation's id. */
  readonly isId: (text: string) => boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

type Verb = "launch" | "list" | "stop" | "log" | "check";

const DONE = 0;
/** `EX_TEMPFAIL` of sysexits(3). */
const FULL = 75;
const OUTPUT_BYTES_MAX = 4 * 2 ** 20;
const LISTED_MAX = 10_000;
const REASON_CHARS_MAX = 500;
const STATES = ["queued", "running", "ended"] as const;

type Said = Readonly<Record<string, unknown>>;

export class ExecProvider implements Provider {
  readonly #options: ExecOptions;
  readonly #oddWords = new Set<string>();

  constructor(options: ExecOptions) {
    this.#options = options;
  }

  async launch(request: LaunchRequest): Promise<Launched> {
    const outcome = await this.#run("launch", request);
    if (outcome.kind !== "exited") return failed(outcome);
    const { code, stdout, stderr } = outcome;
    if (code === FULL) return { kind: "full", reason: reasonIn(stderr, code) };
    if (code !== DONE) return { kind: "refused", reason: reasonIn(stderr, code) };
    const said = parse(stdout);
    if (said === undefined) return { kind: "unknown", reason: NO_JSON };
    return { kind: "launched", ref: textIn(said, "ref") || request.allocation };
  }

  async list(labels: FleetLabels): Promise<Listing> {
    const outcome = await this.#run("list", labels);
    if (outcome.kind !== "exited") return unknown(outcome);
    if (outcome.code !== DONE) return { kind: "unknown", reason: reasonIn(outcome.stderr, outcome.code) };
    const entries = parse(outcome.stdout)?.["allocations"];
    if (!Array.isArray(entries)) return { kind: "unknown", reason: 'its answer has no list "allocations"' };
    if (entries.length > LISTED_MAX)
      return { kind: "unknown", reason: `it lists more than ${LISTED_MAX} allocations` };
    const allocations: ListedAllocation[] = [];
    for (const entry of entries as readonly unknown[]) {
      const listed = isSaid(entry) ? this.#listed(entry, labels) : "broken";
      if (listed === "broken")
        return { kind: "unknown", reason: "an allocation in its list has no id of ours, or no state" };
      if (listed !== "foreign") allocations.push(listed);
    }
    return { kind: "listed", allocations };
  }

  async stop(request: StopRequest): Promise<Stopped> {
    const outcome = await this.#run("stop", request);
    if (outcome.kind !== "exited") return unknown(outcome);
    if (outcome.code === DONE) return { kind: "stopped" };
    return { kind: "unknown", reason: reasonIn(outcome.stderr, outcome.code) };
  }

  async log(name: AllocationName): Promise<FoundLog> {
    const outcome = await this.#run("log", name);
    if (outcome.kind !== "exited") return unknown(outcome);
    if (outcome.code !== DONE) return { kind: "unknown", reason: reasonIn(outcome.stderr, outcome.code) };
    const said = parse(outcome.stdout);
    if (said === undefined) return { kind: "unknown", reason: NO_JSON };
    const text = redactSecrets(textIn(said, "log"));
    return { kind: "log", text: Buffer.from(text).subarray(-LOG_BYTES_MAX).toString("utf8") };
  }

  async check(labels: FleetLabels): Promise<Checked> {
    const outcome = await this.#run("check", labels);
    if (outcome.kind !== "exited") return failed(outcome);
    const { code, stdout, stderr } = outcome;
    if (code !== DONE) return { kind: "refused", reason: reasonIn(stderr, code) };
    const said = parse(stdout);
    if (said === undefined) return { kind: "refused", reason: NO_JSON };
    return { kind: "ready", words: textIn(said, "version") };
  }

  #run(verb: Verb, request: object): Promise<BoundedOutcome> {
    const { command, directory, timeLimitMs, clock } = this.#options;
    const [program, ...words] = command;
    return runBounded(
      {
        ...{ command: [program, ...words, verb], directory, timeLimitMs },
        input: `${JSON.stringify({ protocol: 1, ...request })}\n`,
        outputBytesMax: OUTPUT_BYTES_MAX,
      },
      clock,
    );
  }

  /** `foreign`: it says that it is another run's. */
  #listed(entry: Said, labels: FleetLabels): ListedAllocation | "foreign" | "broken" {
    const [allocation, word] = [textIn(entry, "allocation"), textIn(entry, "state")];
    if (!this.#options.isId(allocation) || word === "") return "broken";
    for (const [name, value] of Object.entries(labels) as [keyof FleetLabels, string][])
      if (entry[name] !== undefined && entry[name] !== value) return "foreign";
    const known = STATES.find((state) => state === word);
    if (known === undefined) this.#warnOf(word, labels.fleet);
    return {
      ...{ allocation, ref: textIn(entry, "ref") || allocation, state: known ?? "running" },
      isPreempted: entry["preempted"] === true,
    };
  }

  #warnOf(word: string, fleet: string): void {
    const shown = printable(word).slice(0, REASON_CHARS_MAX);
    if (this.#oddWords.has(shown) || this.#oddWords.size >= LISTED_MAX) return;
    this.#oddWords.add(shown);
    const message = "the provider of a fleet says a state that nobody knows; it counts as running";
    this.#options.log.warn(message, { fleet, state: shown });
  }
}

const NO_JSON = "its answer is no JSON object";

type Unanswered = Exclude<BoundedOutcome, { readonly kind: "exited" }>;

function unknown({ reason }: Unanswered): { readonly kind: "unknown"; readonly reason: string } {
  return { kind: "unknown", reason };
}

/** A program that is not there has done nothing. */
function failed(
  outcome: Unanswered,
):
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "unknown"; readonly reason: string } {
  return outcome.kind === "unstarted" ? { kind: "refused", reason: outcome.reason } : unknown(outcome);
}

function reasonIn(stderr: string, code: number): string {
  const words = printable(redactSecrets(stderr.trim())).slice(-REASON_CHARS_MAX);
  return words === "" ? `it exited with ${code} and said nothing` : words;
}

function parse(text: string): Said | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isSaid(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isSaid(value: unknown): value is Said {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Empty where it is no text. */
function textIn(said: Said, name: string): string {
  const value = said[name];
  return typeof value === "string" ? value : "";
}
