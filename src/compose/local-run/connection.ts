// The way to the coordinator of a local run, which dies and comes back, also at another address: one transport over whichever
// client is current. Keeps true: that the coordinator was replaced, or that its port is somebody else's meanwhile, ends no call.
import type { Transport } from "@connectrpc/connect";
import { showAddresses } from "../../base/address.ts";
import { backoffMs } from "../../base/random.ts";
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { failure, RolloutError } from "../../base/errors.ts";
import type { ErrorCode } from "../../base/errors.ts";
import type { Random } from "../../base/random.ts";
import type { ClientConfig } from "../../config/resolve.ts";
import { silentLogger } from "../../observe/log.ts";
import type { Client } from "../../transport/client.ts";
import { redirect } from "../../transport/errors.ts";
import { openOperatorClient } from "../operator-client.ts";

const BACKOFF = { baseMs: 50, ceilingMs: 1_000 };
/** Errors about a stranger that answers at the address: they last no longer than a coordinator takes to find another port. */
const OF_STRANGERS: readonly ErrorCode[] = ["certificate_refused", "coordinator_not_trusted"];
const STRANGER_PATIENCE_MS = 20_000;

export interface ConnectionPorts {
  readonly clock: Clock;
  readonly random: Random;
}

export class Connection {
  readonly #ports: ConnectionPorts;
  readonly #closing = new AbortController();
  #client: Client | undefined;
  #address = "";
  #strangerSinceMs: number | undefined;
  #downfall: RolloutError | undefined;

  constructor(ports: ConnectionPorts) {
    this.#ports = ports;
  }

  /** Calls from now on go there, and so do those in flight that are not answered yet. Throws tls_… rows. */
  async open(config: ClientConfig): Promise<void> {
    const client = await openOperatorClient(config, silentLogger);
    const former = this.#client;
    [this.#client, this.#strangerSinceMs] = [client, undefined];
    this.#address = showAddresses(config.worker.coordinatorAddr);
    former?.close();
    if (this.#closing.signal.aborted) client.close();
  }

  /** A coordinator that is away is a failure, as with any client. */
  readonly transport: Transport = {
    unary: async (...call) => {
      for (;;) {
        const client = this.#current;
        try {
          const answer = await client.transport.unary(...call);
          this.#strangerSinceMs = undefined;
          return answer;
        } catch (error) {
          // A coordinator that was replaced has not answered; the one that is there now may.
          if (client === this.#client || this.#isOver(call[1])) throw this.#explained(error);
        }
      }
    },
    stream: async (...call) => {
      const translate = (error: unknown): Error => this.#downfall ?? asError(error);
      try {
        const response = await this.#current.transport.stream(...call);
        return { ...response, message: redirect(response.message, translate) };
      } catch (error) {
        throw translate(error);
      }
    },
  };

  /** The same, and a coordinator that is away is waited for until `close`, or until there will be none. For calls of ours: all may be repeated. */
  readonly patientTransport: Transport = {
    unary: async (...call) => {
      const { clock, random } = this.#ports;
      const signals = [this.#closing.signal, ...(call[1] === undefined ? [] : [call[1]])];
      for (let tried = 1; ; tried++) {
        try {
          return await this.transport.unary(...call);
        } catch (error) {
          if (!(error instanceof RolloutError) || error.row.retry === "never" || this.#isOver(call[1]))
            throw error;
        }
        await sleep(clock, backoffMs(BACKOFF, tried, random), AbortSignal.any(signals));
      }
    },
    stream: (...call) => this.transport.stream(...call),
  };

  /** There will be no coordinator, or nobody who works: calls from now on and those in flight reject with this. */
  fail(error: RolloutError): void {
    this.#downfall ??= error;
    this.close();
  }

  /** Calls in flight end as interrupted. Idempotent. */
  close(): void {
    this.#closing.abort();
    this.#client?.close();
  }

  get #current(): Client {
    if (this.#client === undefined) throw failure("interrupted", {});
    return this.#client;
  }

  #isOver(signal: AbortSignal | undefined): boolean {
    return this.#closing.signal.aborted || signal?.aborted === true;
  }

  #explained(error: unknown): unknown {
    if (this.#downfall !== undefined) return this.#downfall;
    if (!(error instanceof RolloutError) || !OF_STRANGERS.includes(error.code)) return error;
    const nowMs = this.#ports.clock.monotonicMs();
    this.#strangerSinceMs ??= nowMs;
    if (nowMs - this.#strangerSinceMs > STRANGER_PATIENCE_MS) return error;
    return failure("coordinator_silent", { address: this.#address }, error);
  }
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
