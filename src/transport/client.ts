// The way to the coordinator that leads: calls over HTTP/2 with mutual TLS 1.3, over a connection that is opened when it is needed and
// kept alive by pings. Where there are several coordinators the one that leads is found: the others name it, and where none
// does each is asked in turn (endpoints.ts). Every failure leaves here as a row of the table of errors. Every unary call of
// ours is idempotent, has a deadline, and is tried again within it when the connection broke under it or nobody led.
import type { StreamResponse, Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { failure } from "../base/errors.ts";
import type { RolloutError } from "../base/errors.ts";
import type { RunId } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import { systemRandom, backoffMs } from "../base/random.ts";
import type { Logger } from "../observe/log.ts";
import { parseAddress } from "../base/address.ts";
import { explainFailure } from "./call-failure.ts";
import type { CallFailure } from "./call-failure.ts";
import type { Route } from "./endpoint.ts";
import type { RoundFailure } from "./endpoints.ts";
import { Endpoints } from "./endpoints.ts";
import { methodName, redirect } from "./errors.ts";
import { AMONG_SEVERAL, TRANSPORT_LIMITS } from "./limits.ts";
import type { TransportLimits } from "./limits.ts";
import { Link } from "./link.ts";
import type { ConnectionRecord } from "./link.ts";
import { ReplayedInput } from "./replayed-input.ts";
import { readCertificatePem } from "./tls/certificate-reading.ts";
import { describeIdentity } from "./tls/identity.ts";
import type { Credentials } from "./tls/identity.ts";

export interface ClientOptions {
  /** `host:port`, of the coordinator or of several of which one leads: one of them is enough, as those that follow name the leader. */
  readonly address: string | readonly string[];
  /** Asks the coordinator at that one address alone: that it does not lead is an answer like any other. False unless said. */
  readonly isAlone?: boolean;
  /** Only this run's coordinators are spoken to, whoever has named them. */
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
  /**
   * The coordinator that answered last does not answer any more, or may not be obeyed: where there are others, its calls in
   * flight end and the next ones go to others first. False when it is the only one: then it stays.
   */
  doubt(): boolean;
  /** Ends all calls and the connection. Idempotent. */
  close(): void;
}

/** A client that connects at its first call. Fails with coordinator_name_not_found when an address is not `host:port`. */
export function openClient(options: ClientOptions): Client {
  const addresses = typeof options.address === "string" ? [options.address] : options.address;
  assert(addresses.length > 0, "there is a coordinator to ask");
  for (const address of addresses)
    if (parseAddress(address) === undefined) throw failure("coordinator_name_not_found", { address });
  return new ConnectedClient(options, addresses);
}

/** Methods that a coordinator answers whether it leads or not. */
const ANSWERED_BY_ALL: ReadonlySet<string> = new Set(["rollout.v1.CoordinatorService/Describe"]);

class ConnectedClient implements Client {
  readonly #options: ClientOptions;
  readonly #limits: TransportLimits;
  /** For one of several: there is another to ask when it has vanished. */
  readonly #limitsAmong: TransportLimits;
  /** The only address that was given. */
  readonly #only: string | undefined;
  readonly #random: Random;
  readonly #endpoints: Endpoints;
  #credentials: Credentials;
  #closed = false;

  constructor(options: ClientOptions, addresses: readonly string[]) {
    this.#options = options;
    this.#credentials = options.credentials;
    this.#limits = { ...TRANSPORT_LIMITS, ...options.limits };
    this.#limitsAmong = { ...TRANSPORT_LIMITS, ...AMONG_SEVERAL, ...options.limits };
    this.#only = addresses.length === 1 ? addresses[0] : undefined;
    this.#random = options.random ?? systemRandom;
    this.#endpoints = new Endpoints({
      addresses,
      open: (address) => this.#openRoute(address),
      clock: options.clock,
      random: this.#random,
      limits: this.#limits,
      isAlone: options.isAlone ?? false,
    });
  }

  readonly transport: Transport = {
    unary: (method, signal, timeoutMs, header, input, values) =>
      this.#tryUntil(methodName(method), timeoutMs, signal, ({ transport }, leftMs) =>
        transport.unary(method, signal, leftMs, header, input, values),
      ),
    stream: (method, signal, timeoutMs, header, input, values) =>
      this.#openStream(methodName(method), input, signal, ({ transport }, messages) =>
        transport.stream(method, signal, timeoutMs, header, messages, values),
      ),
  };

  setCredentials(credentials: Credentials): void {
    this.#credentials = credentials;
    this.#endpoints.renew();
  }

  doubt(): boolean {
    return this.#endpoints.doubt();
  }

  close(): void {
    this.#closed = true;
    this.#endpoints.end();
  }

  #openRoute(text: string): Route {
    const { clock, runId } = this.#options;
    const credentials = this.#credentials;
    const limits = text === this.#only ? this.#limits : this.#limitsAmong;
    const address = parseAddress(text);
    assert(address !== undefined, "an address was checked when it was given or told");
    const reading = readCertificatePem(credentials.certificatePem);
    assert(reading.kind === "identified", "a client is given a certificate of ours");
    const link = new Link({ address, runId, credentials, clock, limits });
    const transport = createConnectTransport({
      httpVersion: "2",
      baseUrl: link.authority,
      sessionManager: link,
      acceptCompression: [],
      readMaxBytes: limits.maxTrustedMessageBytes,
      writeMaxBytes: limits.maxTrustedMessageBytes,
    });
    const subject = describeIdentity(reading.facts.identity);
    return { link, transport, ends: { address: text, subject, limits } };
  }

  async #tryUntil<Answer>(
    method: string,
    timeoutMs: number | undefined,
    signal: AbortSignal | undefined,
    attempt: (route: Route, leftMs: number) => Promise<Answer>,
  ): Promise<Answer> {
    const { clock, log } = this.#options;
    const limits = this.#limits;
    const range = { baseMs: limits.retryBaseMs, ceilingMs: limits.retryCeilingMs };
    const withinMs = timeoutMs ?? limits.unaryTimeoutMs;
    const startMs = clock.monotonicMs();
    const patientUntilMs = startMs + (timeoutMs ?? limits.leaderPatienceMs);
    let endMs = startMs + withinMs;
    const refusal = this.#endpoints.refusal(withinMs);
    if (refusal !== undefined && !this.#closed) throw refusal;
    await this.#endpoints.rested(withinMs, signal);
    for (let tried = 1; ; tried++) {
      const round = this.#endpoints.round();
      let failed: RoundFailure | undefined;
      while (failed === undefined) {
        const { route } = round.at;
        const before = route.link.report;
        try {
          this.#demandOpen();
          const answer = await attempt(route, Math.max(1, Math.floor(endMs - clock.monotonicMs())));
          if (!ANSWERED_BY_ALL.has(method)) round.answered();
          return answer;
        } catch (thrown) {
          const said = await this.#explain(thrown, route, method, signal);
          const again = said.again || hasOnlyJoined(route.link.report, before);
          // Time limits of calls are whole milliseconds, so one may end that much before its end.
          failed = round.failed({ ...said, again }, clock.monotonicMs() > endMs - 1);
        }
      }
      const nowMs = clock.monotonicMs();
      // Somebody lives who will know the next leader: that is worth more patience than a call to one that is away.
      if (failed.isFollowed) endMs = Math.max(endMs, Math.min(nowMs + withinMs, patientUntilMs));
      const waitMs = failed.isPaused ? this.#endpoints.pauseMs : backoffMs(range, tried, this.#random);
      const isOver = (tried >= limits.maxTries && !failed.isFollowed) || nowMs + waitMs >= endMs;
      if (!failed.again || isOver) throw failed.error;
      log.debug("a call is tried again", { method, tried, err: failed.error });
      await sleep(clock, waitMs, signal);
      if (failed.isPaused) await this.#endpoints.rested(Math.max(0, endMs - clock.monotonicMs()), signal);
    }
  }

  /** A stream to the coordinator that answers on it: the others are left as they say that they follow. */
  async #openStream<Sent extends DescMessage, Answered extends DescMessage>(
    method: string,
    input: AsyncIterable<MessageInitShape<Sent>>,
    signal: AbortSignal | undefined,
    open: (
      route: Route,
      messages: AsyncIterable<MessageInitShape<Sent>>,
    ) => Promise<StreamResponse<Sent, Answered>>,
  ): Promise<StreamResponse<Sent, Answered>> {
    const messages = new ReplayedInput(input);
    await this.#endpoints.rested(this.#limits.unaryTimeoutMs, signal);
    const round = this.#endpoints.round();
    for (;;) {
      const { route } = round.at;
      const explain = (thrown: unknown): Promise<CallFailure> => this.#explain(thrown, route, method, signal);
      try {
        this.#demandOpen();
        const response = await open(route, messages.again());
        const answers = response.message[Symbol.asyncIterator]();
        const first = await answers.next();
        messages.settle();
        round.answered();
        const translate = async (thrown: unknown): Promise<RolloutError> => {
          const said = await explain(thrown);
          round.brokeOff(said);
          return said.error;
        };
        return { ...response, message: redirect(behind(first, answers), translate) };
      } catch (thrown) {
        const failed = round.failed(await explain(thrown), !messages.isWhole);
        if (failed === undefined) continue;
        messages.end();
        throw failed.error;
      }
    }
  }

  async #explain(
    thrown: unknown,
    { link, ends }: Route,
    method: string,
    signal: AbortSignal | undefined,
  ): Promise<CallFailure> {
    if (signal?.aborted === true || this.#closed) {
      return { error: failure("interrupted", {}, thrown), again: false };
    }
    // The end of a stream and the end of its connection are told in separate turns.
    await new Promise<void>((resolve) => this.#options.clock.nextTurn(resolve));
    return explainFailure(thrown, link.report, { ...ends, method });
  }

  #demandOpen(): void {
    if (this.#closed) throw failure("interrupted", {});
  }
}

/**
 * Whether a call failed with an attempt to connect that another call had begun before it: that there was nobody then does not say
 * that there is nobody now.
 */
function hasOnlyJoined(failed: ConnectionRecord | undefined, before: ConnectionRecord | undefined): boolean {
  return failed !== undefined && failed === before && failed.phase === "connecting";
}

/** The rest of an iteration with its first result, which was waited for. */
function behind<Message>(
  first: IteratorResult<Message>,
  rest: AsyncIterator<Message>,
): AsyncIterable<Message> {
  let taken: IteratorResult<Message> | undefined = first;
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => {
        if (taken === undefined) return rest.next();
        const result = taken;
        taken = undefined;
        return Promise.resolve(result);
      },
      return: (value?: unknown) => rest.return?.(value) ?? Promise.resolve({ done: true, value: undefined }),
      throw: (thrown?: unknown) => rest.throw?.(thrown) ?? rethrow(thrown),
    }),
  };
}

async function rethrow(thrown: unknown): Promise<never> {
  throw thrown;
}
