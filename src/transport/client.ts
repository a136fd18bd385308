// The way to a coordinator: calls over one HTTP/2 connection with mutual TLS 1.3, which is opened when it is needed and kept
// alive by pings. Every failure leaves here as a row of the table of errors. Every unary call of ours is idempotent,
// has a deadline, and is tried again within it when the connection broke under it.
import type { Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { assert } from "../base/assert.ts";
import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { failure } from "../base/errors.ts";
import type { RolloutError } from "../base/errors.ts";
import type { RunId } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import { systemRandom } from "../base/random.ts";
import type { Logger } from "../observe/log.ts";
import { parseAddress } from "../base/address.ts";
import type { Address } from "../base/address.ts";
import { explainFailure } from "./call-failure.ts";
import type { CallEnds, CallFailure } from "./call-failure.ts";
import { methodName } from "./errors.ts";
import { TRANSPORT_LIMITS } from "./limits.ts";
import type { TransportLimits } from "./limits.ts";
import { Link } from "./link.ts";
import { redirect } from "./redirected-iterable.ts";
import { readCertificatePem } from "./tls/certificate-reading.ts";
import { describeIdentity } from "./tls/identity.ts";
import type { Credentials } from "./tls/identity.ts";

export interface ClientOptions {
  /** `host:port` */
  readonly address: string;
  /** Only this run's coordinator is spoken to. */
  readonly runId: RunId;
  readonly credentials: Credentials;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random?: Random;
  readonly limits?: Partial<TransportLimits>;
}

export interface Client {
  /**
   * For `createClient(Service, transport)`. Rejects with RolloutError only: `interrupted` when the caller's signal or `close`
   * ended the call.
   */
  readonly transport: Transport;
  /** New calls are made under these, on a new connection; streams in flight end in their own time. */
  setCredentials(credentials: Credentials): void;
  /** Ends all calls and the connection. Idempotent. */
  close(): void;
}

/** A client that connects at its first call. Fails with coordinator_name_not_found when the address is not `host:port`. */
export function openClient(options: ClientOptions): Client {
  const address = parseAddress(options.address);
  if (address === undefined) throw failure("coordinator_name_not_found", { address: options.address });
  return new ConnectedClient(options, address);
}

/** A link and what is over it: replaced as one when credentials change. */
interface Route {
  readonly link: Link;
  readonly transport: Transport;
  readonly ends: CallEnds;
}

class ConnectedClient implements Client {
  readonly #options: ClientOptions;
  readonly #address: Address;
  readonly #limits: TransportLimits;
  readonly #random: Random;
  readonly #links = new Set<Link>();
  #route: Route;
  #closed = false;

  constructor(options: ClientOptions, address: Address) {
    this.#options = options;
    this.#address = address;
    this.#limits = { ...TRANSPORT_LIMITS, ...options.limits };
    this.#random = options.random ?? systemRandom;
    this.#route = this.#makeRoute(options.credentials);
  }

  readonly transport: Transport = {
    unary: (method, signal, timeoutMs, header, input, values) => {
      const within = timeoutMs ?? this.#limits.unaryTimeoutMs;
      return this.#tryUntil(methodName(method), within, signal, ({ transport }, leftMs) =>
        transport.unary(method, signal, leftMs, header, input, values),
      );
    },
    stream: async (method, signal, timeoutMs, header, input, values) => {
      const route = this.#route;
      const translate = async (thrown: unknown): Promise<RolloutError> =>
        (await this.#explain(thrown, route, signal)).error;
      try {
        this.#demandOpen();
        const response = await route.transport.stream(method, signal, timeoutMs, header, input, values);
        return { ...response, message: redirect(response.message, translate) };
      } catch (thrown) {
        throw await translate(thrown);
      }
    },
  };

  setCredentials(credentials: Credentials): void {
    for (const link of this.#links) {
      link.retire();
      if (link.isSpent) this.#links.delete(link);
    }
    this.#route = this.#makeRoute(credentials);
  }

  close(): void {
    this.#closed = true;
    for (const link of this.#links) link.end();
    this.#links.clear();
  }

  #makeRoute(credentials: Credentials): Route {
    const { clock, runId } = this.#options;
    const limits = this.#limits;
    const reading = readCertificatePem(credentials.certificatePem);
    assert(reading.kind === "identified", "a client is given a certificate of ours");
    const link = new Link({ address: this.#address, runId, credentials, clock, limits });
    this.#links.add(link);
    const transport = createConnectTransport({
      httpVersion: "2",
      baseUrl: link.authority,
      sessionManager: link,
      acceptCompression: [],
      readMaxBytes: limits.maxTrustedMessageBytes,
      writeMaxBytes: limits.maxTrustedMessageBytes,
    });
    const subject = describeIdentity(reading.facts.identity);
    return { link, transport, ends: { address: this.#options.address, subject, limits } };
  }

  async #tryUntil<Answer>(
    method: string,
    withinMs: number,
    signal: AbortSignal | undefined,
    attempt: (route: Route, leftMs: number) => Promise<Answer>,
  ): Promise<Answer> {
    const { clock, log } = this.#options;
    const range = { baseMs: this.#limits.retryBaseMs, ceilingMs: this.#limits.retryCeilingMs };
    const endMs = clock.monotonicMs() + withinMs;
    for (let tried = 1; ; tried++) {
      const route = this.#route;
      let failed: CallFailure;
      try {
        this.#demandOpen();
        return await attempt(route, Math.max(1, Math.floor(endMs - clock.monotonicMs())));
      } catch (thrown) {
        failed = await this.#explain(thrown, route, signal);
      }
      const waitMs = backoffMs(range, tried, this.#random);
      const isOver = tried >= this.#limits.maxTries || clock.monotonicMs() + waitMs >= endMs;
      if (!failed.again || isOver) throw failed.error;
      log.debug("a call is tried again", { method, tried, err: failed.error });
      await sleep(clock, waitMs, signal);
    }
  }

  async #explain(thrown: unknown, route: Route, signal: AbortSignal | undefined): Promise<CallFailure> {
    if (signal?.aborted === true || this.#closed) {
      return { error: failure("interrupted", {}, thrown), again: false };
    }
    // The end of a stream and the end of its connection are told in separate turns.
    await new Promise<void>((resolve) => this.#options.clock.nextTurn(resolve));
    return explainFailure(thrown, route.link.report, route.ends);
  }

  #demandOpen(): void {
    if (this.#closed) throw failure("interrupted", {});
  }
}
