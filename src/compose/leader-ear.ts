// Whether a coordinator that follows reaches the leader over the network, on which workers are too. The store says no more than that
// the leader reaches the store.
import { createClient } from "@connectrpc/connect";
import type { Client } from "@connectrpc/connect";
import type { Clock } from "../base/clock.ts";
import { RolloutError } from "../base/errors.ts";
import type { RunId } from "../base/ids.ts";
import { CoordinatorService } from "../gen/rollout/v1/coordinator_pb.ts";
import type { Logger } from "../observe/log.ts";
import { openClient } from "../transport/client.ts";
import type { Credentials } from "../transport/tls/identity.ts";

export interface LeaderEarOptions {
  readonly runId: RunId;
  /** The coordinator's own, at each new connection. */
  readonly credentials: () => Credentials;
  readonly heartbeatIntervalMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

interface Line {
  readonly address: string;
  readonly calls: Client<typeof CoordinatorService>;
  readonly close: () => void;
  isAsking: boolean;
  /** Whether it has answered once; undefined where what it answers says nothing of the network. */
  answers: boolean | undefined;
  /** When the call was made that it has answered last; before that, when it was first asked. Monotonic. */
  heardMs: number;
  /** When it was last wanted to be known. */
  wantedMs: number;
}

/** One call may be lost with its connection, or late; a network that is cut loses each. */
const DEAF_HEARTBEATS = 2.5;
/** A call is given up after so many heartbeats. */
const PATIENCE_HEARTBEATS = 2;

export class LeaderEar {
  readonly #options: LeaderEarOptions;
  #line: Line | undefined;

  constructor(options: LeaderEarOptions) {
    this.#options = options;
  }

  /** As far as it is known; the leader at this address is asked once more, which is heard of the next time. */
  readonly hears = (address: string): boolean | undefined => {
    const { clock, heartbeatIntervalMs } = this.#options;
    const [nowMs, patienceMs] = [clock.monotonicMs(), DEAF_HEARTBEATS * heartbeatIntervalMs];
    const known = this.#line;
    // A coordinator that has not asked for a while has led meanwhile: that nothing was answered since then is nobody's silence.
    const isSame = known?.address === address && nowMs - known.wantedMs < patienceMs;
    const line = isSame ? known : this.#dial(address);
    line.wantedMs = nowMs;
    if (!line.isAsking) void this.#ask(line);
    if (line.answers !== undefined && nowMs - line.heardMs >= patienceMs) return false;
    return line.answers === true ? true : undefined;
  };

  close(): void {
    this.#line?.close();
    this.#line = undefined;
  }

  #dial(address: string): Line {
    this.close();
    const { runId, clock, log, credentials } = this.#options;
    const client = openClient({ address, isAlone: true, runId, credentials: credentials(), clock, log });
    const calls = createClient(CoordinatorService, client.transport);
    const close = (): void => client.close();
    const nowMs = clock.monotonicMs();
    const line = { address, calls, close, isAsking: false, answers: false, heardMs: nowMs, wantedMs: nowMs };
    this.#line = line;
    return line;
  }

  /** Never rejects. */
  async #ask(line: Line): Promise<void> {
    line.isAsking = true;
    const askedMs = this.#options.clock.monotonicMs();
    const timeoutMs = PATIENCE_HEARTBEATS * this.#options.heartbeatIntervalMs;
    try {
      await line.calls.describe({}, { timeoutMs });
      [line.answers, line.heardMs] = [true, askedMs];
    } catch (error) {
      if (isRefusal(error)) line.answers = undefined;
      else if (!isSilence(error)) [line.answers, line.heardMs] = [true, askedMs];
    }
    line.isAsking = false;
  }
}

/** A coordinator that takes no calls of others says nothing of the network by that. */
function isRefusal(error: unknown): boolean {
  return error instanceof RolloutError && REFUSALS.has(error.code);
}

/** Any other error is an answer: the network is there. */
function isSilence(error: unknown): boolean {
  return error instanceof RolloutError && SILENCES.has(error.code);
}

const REFUSALS: ReadonlySet<string> = new Set(["permission_denied", "certificate_refused"]);
const SILENCES: ReadonlySet<string> = new Set([
  "coordinator_silent",
  "coordinator_refused_connection",
  "coordinator_name_not_found",
]);
