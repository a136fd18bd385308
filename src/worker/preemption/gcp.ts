// Preemption notices of Compute Engine: asked for by a question that the metadata server answers when something has changed,
// or after a while when nothing has.
//
// Keeps true: a change between two questions is not missed, because each names the state that the last one saw.
import { unreachable } from "../../base/assert.ts";
import { backoffMs } from "../../base/random.ts";
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import type { ComputeHint, Hint } from "./compute-hint.ts";
import { askMetadata, MetadataPatience, MetadataTrouble } from "./metadata-http.ts";
import type { MetadataAddress, MetadataAnswer, MetadataWatchOptions } from "./metadata-http.ts";

/**
 * A question that hangs hides a notice until it times out, and a notice has 30 s: 8 s of waiting, 2 s more, and a first
 * backoff of at most 1 s leave 19 s, and the drain wants 15 s and its margin 3 s.
 */
const TIMING = {
  /** How long the server may keep a question when nothing changes. */
  waitSec: 8,
  /** How long an answer may take beyond that, of a server that is not slow (metadata-http.ts). */
  requestTimeoutMs: 2_000,
  /** The least time between two questions, for a server that does not wait as it was asked to. */
  paceMs: 1_000,
  backoff: { baseMs: 1_000, ceilingMs: 5_000 },
};

export type GcpTiming = Readonly<typeof TIMING>;

export interface GcpHintsOptions extends MetadataWatchOptions {
  readonly timing?: GcpTiming;
}

const NOTICE_PATH = "/computeMetadata/v1/instance/preempted";
const HEADERS = { "metadata-flavor": "Google" };

type Observation =
  | { readonly kind: "preempted" }
  | {
      readonly kind: "running";
      /** Names the state that was seen. Undefined: the server does not name it, and cannot be asked to wait. */
      readonly etag: string | undefined;
    }
  | { readonly kind: "failed"; readonly reason: string; readonly isSilent?: boolean };

export class GcpHints implements ComputeHint {
  readonly #options: GcpHintsOptions;
  readonly #timing: GcpTiming;
  readonly #patience: MetadataPatience;

  constructor(options: GcpHintsOptions) {
    this.#options = options;
    this.#timing = options.timing ?? TIMING;
    this.#patience = new MetadataPatience(this.#timing.requestTimeoutMs, options.isSlow ?? false);
  }

  /** Ends by itself with the notice. */
  async watch(signal: AbortSignal, onHint: (hint: Hint) => void): Promise<void> {
    const { clock, random, log } = this.#options;
    const { paceMs, backoff } = this.#timing;
    const trouble = new MetadataTrouble(log, "gcp");
    let etag: string | undefined;
    for (let failures = 0; ;) {
      const askedAtMs = clock.monotonicMs();
      const seen = await this.#ask(etag, signal);
      if (signal.aborted) return;
      switch (seen.kind) {
        case "preempted":
          // A machine may be given a longer notice than usual, but its metadata does not say so: the lead stays unknown.
          return onHint({
            kind: "preemption",
            cause: "gcp",
            leadMs: undefined,
            noticedAtMs: clock.monotonicMs(),
          });
        case "running":
          failures = 0;
          trouble.over();
          etag = seen.etag;
          await sleep(clock, paceMs - (clock.monotonicMs() - askedAtMs), signal);
          break;
        case "failed":
          failures++;
          trouble.report(seen.reason, seen.isSilent);
          await sleep(clock, backoffMs(backoff, failures, random), signal);
          break;
        default:
          unreachable(seen, "observation");
      }
    }
  }

  /** Waits for a change of the state that `etag` names. Without one, asks how things are: a wait would hide what is so already. */
  async #ask(etag: string | undefined, signal: AbortSignal): Promise<Observation> {
    const { address, clock } = this.#options;
    const { waitSec } = this.#timing;
    const wait = new URLSearchParams({ wait_for_change: "true", timeout_sec: String(waitSec) });
    if (etag !== undefined) wait.set("last_etag", etag);
    const isWaiting = etag !== undefined;
    const waitMs = isWaiting ? waitSec * 1_000 : 0;
    const path = isWaiting ? `${NOTICE_PATH}?${wait.toString()}` : NOTICE_PATH;
    return read(await this.#patience.ask({ address, path, headers: HEADERS, clock, signal }, waitMs));
  }
}

/** Whether what answers is the metadata server of Compute Engine. */
export async function isGcp(
  address: MetadataAddress,
  timeoutMs: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  const question = { address, path: "/computeMetadata/v1/", headers: HEADERS, timeoutMs, clock, signal };
  return hasFlavor(await askMetadata(question));
}

function read(answer: MetadataAnswer): Observation {
  if (answer.kind === "unanswered")
    return { kind: "failed", reason: answer.reason, isSilent: answer.isSilent };
  if (answer.status !== 200) return { kind: "failed", reason: `it answers ${answer.status}` };
  if (!hasFlavor(answer)) return { kind: "failed", reason: "what answers is not a server of Google" };
  if (answer.body === "TRUE") return { kind: "preempted" };
  // There is an answer at all times, so one that cannot be read says nothing.
  if (answer.body !== "FALSE") return { kind: "failed", reason: "it answers neither TRUE nor FALSE" };
  return { kind: "running", etag: answer.header("etag") };
}

/** Every answer of the real server carries it; a proxy or another cloud's server does not. */
function hasFlavor(answer: MetadataAnswer): boolean {
  return answer.kind === "answered" && answer.header("metadata-flavor") === "Google";
}
