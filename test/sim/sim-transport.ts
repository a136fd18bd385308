// Connect's transport over the simulated network: what `createClient` calls, and at the other end the coordinator's own service
// implementations. Messages travel as bytes; a variant of the cluster may change them on their way.
import type {
  DescMessage,
  DescMethod,
  DescMethodStreaming,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext, ServiceImpl, Transport } from "@connectrpc/connect";
import type { DescService } from "@bufbuild/protobuf";
import { AsyncQueue } from "../../src/base/async-queue.ts";
import { failure, RolloutError } from "../../src/base/errors.ts";
import type { Identity } from "../../src/transport/tls/identity.ts";
import { callWithoutServer } from "../support/call-scope.ts";
import type { CallContext } from "../support/call-scope.ts";
import type { Connection, Direction, Network } from "./network.ts";
import type { SimProcess } from "./process.ts";

const ADDRESS = "sim:1";
const UNREAD_MAX = 100_000;

type Implementation = Record<string, (request: unknown, context: HandlerContext) => unknown>;

/** The services of a process, taken from its routes. */
export class Services {
  readonly #byName = new Map<string, Implementation>();

  constructor(routes: (router: ConnectRouter) => void) {
    const service = <Desc extends DescService>(
      desc: Desc,
      implementation: Partial<ServiceImpl<Desc>>,
    ): void => {
      this.#byName.set(desc.typeName, implementation as Implementation);
    };
    const rpc = ({ parent, localName }: DescMethod, implementation: Implementation[string]): void => {
      this.#byName.set(parent.typeName, {
        ...this.#byName.get(parent.typeName),
        [localName]: implementation,
      });
    };
    // Nothing else of a router is used.
    routes({ service, rpc } as unknown as ConnectRouter);
  }

  implementationOf(method: DescMethod): Implementation[string] {
    const found = this.#byName.get(method.parent.typeName)?.[method.localName];
    if (found === undefined) throw failure("internal", { detail: `no ${method.name} here` });
    return found;
  }
}

/** Sees each message of a stream when it leaves, and may put others in its place. */
export interface Tap {
  onStream(method: DescMethod, client: SimProcess): StreamTap | undefined;
}

export interface StreamTap {
  /** The messages to send instead. `send` sends others on the same stream, past the taps, now or later. */
  onMessage(direction: Direction, message: unknown, send: Send): readonly unknown[];
}

export type Send = (direction: Direction, message: unknown) => void;

export interface SimTransportOptions {
  readonly network: Network;
  readonly client: SimProcess;
  readonly identity: Identity;
  /** Machines with coordinators, as the client knows them. */
  readonly addresses: readonly string[];
  readonly servicesOf: (server: SimProcess) => Services | undefined;
  readonly taps: readonly Tap[];
}

export class SimTransport {
  readonly #options: SimTransportOptions;
  #connection: Connection | undefined;
  /** The address that is tried now; another one after each that fails. */
  #at: number;

  constructor(options: SimTransportOptions) {
    this.#options = options;
    const { client, addresses } = options;
    this.#at = addresses.length > 1 ? Math.floor(client.random.unit() * addresses.length) : 0;
  }

  readonly transport: Transport = {
    unary: async (method, _signal, _timeoutMs, _header, input) => {
      const bytes = toBinary(method.input, create(method.input, input));
      const answer = await this.#ask(method, bytes);
      const message = fromBinary(method.output, answer);
      return { stream: false, ...answerTo(method), message };
    },
    stream: async (method, signal, _timeoutMs, _header, input) => {
      const message = this.#open(method, signal, input);
      return { stream: true, ...answerTo(method), message };
    },
  };

  #reach(): Connection | undefined {
    if (this.#connection?.isUsable === true) return this.#connection;
    const { network, client, addresses } = this.#options;
    if (this.#connection !== undefined) this.#at++;
    const tried = addresses[this.#at % addresses.length] ?? "";
    this.#connection = network.connect(client, tried);
    if (this.#connection === undefined) this.#at++;
    return this.#connection;
  }

  /** A coordinator that follows says who leads, or that it does not know: the next call goes there, or to the next one. */
  #moveOn(error: RolloutError, connection: Connection): RolloutError {
    if (error.code !== "not_leader") return error;
    const { addresses } = this.#options;
    if (connection === this.#connection) {
      const hinted = addresses.indexOf(String(error.params["address"]));
      this.#at = hinted >= 0 ? hinted : this.#at + 1;
      this.#connection = undefined;
    }
    return silent();
  }

  #ask(method: DescMethod, request: Uint8Array): Promise<Uint8Array> {
    const { network, client } = this.#options;
    const { random } = network.world;
    const { lossChance, duplicateChance } = network.weather;
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
    const connection = this.#reach();
    const isRefused = connection === undefined;
    client.after(isRefused ? network.delayMs() : 5_000 + network.silenceMs(), () => reject(silent()));
    const copies = isRefused || random.unit() < lossChance ? 0 : random.unit() < duplicateChance ? 2 : 1;
    for (let copy = 0; copy < copies; copy++)
      network.world.after(network.delayMs(), () =>
        connection?.arrive("up", () => {
          void this.#serveOnce(connection, method, request).then((answer) => {
            if (random.unit() < lossChance) return;
            network.world.after(network.delayMs(), () =>
              connection.arrive("down", () =>
                answer instanceof Error ? reject(this.#moveOn(answer, connection)) : resolve(answer),
              ),
            );
          });
        }),
      );
    return promise;
  }

  async #serveOnce(
    { server }: Connection,
    method: DescMethod,
    bytes: Uint8Array,
  ): Promise<Uint8Array | RolloutError> {
    try {
      const { servicesOf, taps, client } = this.#options;
      const implementation = servicesOf(server)?.implementationOf(method);
      if (implementation === undefined) return silent();
      const request = fromBinary(method.input, bytes);
      const watching = taps.flatMap((tap) => tap.onStream(method, client) ?? []);
      for (const tap of watching) tap.onMessage("up", request, () => {});
      const answer = await implementation(request, callWithoutServer(method, this.#options.identity));
      const message = create(method.output, answer as MessageInitShape<DescMessage>);
      for (const tap of watching) tap.onMessage("down", message, () => {});
      return toBinary(method.output, message);
    } catch (error) {
      return overTheWire(error);
    }
  }

  #open<I extends DescMessage, O extends DescMessage>(
    method: DescMethodStreaming<I, O>,
    signal: AbortSignal | undefined,
    input: AsyncIterable<MessageInitShape<I>>,
  ): AsyncIterable<MessageShape<O>> {
    const { network, client, identity, taps } = this.#options;
    const connection = this.#reach();
    const answers = new AsyncQueue<MessageShape<O>>(UNREAD_MAX);
    if (connection === undefined) {
      client.after(network.delayMs(), () => answers.end(silent()));
      signal?.addEventListener("abort", () => answers.end(failure("interrupted", {})));
      return answers;
    }
    const streamTaps = taps.flatMap((tap) => tap.onStream(method, client) ?? []);
    const stream = new Stream(network, connection, method, streamTaps);
    stream.open(
      this.#options.servicesOf(connection.server),
      (received) => callWithoutServer(method, identity, received),
      {
        onMessage: (message) => void answers.push(message as MessageShape<O>),
        onEnd: (error) => answers.end(error && this.#moveOn(error, connection)),
      },
    );
    signal?.addEventListener("abort", () => {
      answers.end(failure("interrupted", {}));
      stream.reset();
    });
    void stream.sendAll(input);
    return answers;
  }
}

interface ClientEnd {
  readonly onMessage: (message: unknown) => void;
  readonly onEnd: (error: RolloutError | undefined) => void;
}

/** One stream of a connection. Each way is a queue of its own. */
class Stream {
  readonly #network: Network;
  readonly #connection: Connection;
  readonly #method: DescMethod;
  readonly #taps: readonly StreamTap[];
  readonly #requests = new AsyncQueue<unknown>(UNREAD_MAX);
  readonly #resetByClient = new AbortController();
  readonly #freeAtMs = { up: 0, down: 0 };
  #isReset = false;

  constructor(network: Network, connection: Connection, method: DescMethod, taps: readonly StreamTap[]) {
    this.#network = network;
    this.#connection = connection;
    this.#method = method;
    this.#taps = taps;
  }

  open(
    services: Services | undefined,
    contextOf: (signal: AbortSignal) => CallContext,
    client: ClientEnd,
  ): void {
    this.#client = client;
    this.#connection.onEnd("client", () => client.onEnd(silent()));
    this.#connection.onEnd("server", () => this.#endAtServer());
    this.#travel("up", () => void this.#serve(services, contextOf(this.#resetByClient.signal)));
  }
  #client: ClientEnd | undefined;

  async sendAll(input: AsyncIterable<unknown>): Promise<void> {
    for await (const message of input) this.#send("up", create(this.#method.input, message as never));
    this.#travel("up", () => this.#requests.end());
  }

  /** The client wants no more of it. */
  reset(): void {
    if (this.#isReset) return;
    this.#isReset = true;
    this.#travel("up", () => this.#endAtServer());
  }

  #endAtServer(): void {
    this.#requests.end(silent());
    this.#resetByClient.abort();
  }

  async #serve(services: Services | undefined, context: CallContext): Promise<void> {
    let error: RolloutError | undefined;
    try {
      const implementation = services?.implementationOf(this.#method);
      const responses = implementation?.(this.#requests, context) as AsyncIterable<unknown> | undefined;
      for await (const response of responses ?? [])
        this.#send("down", create(this.#method.output, response as never));
    } catch (thrown) {
      error = overTheWire(thrown);
    }
    context.abort();
    this.#travel("down", () => this.#client?.onEnd(error));
  }

  #send(direction: Direction, message: unknown): void {
    let messages = [message];
    for (const tap of this.#taps)
      messages = messages.flatMap((one) => [
        ...tap.onMessage(direction, one, (way, other) => this.#post(way, other)),
      ]);
    for (const one of messages) this.#post(direction, one);
  }

  #post(direction: Direction, message: unknown): void {
    const schema = direction === "up" ? this.#method.input : this.#method.output;
    const bytes = toBinary(schema, message as never);
    this.#travel(direction, () => {
      const received = fromBinary(schema, bytes);
      if (direction === "up") this.#requests.push(received);
      else this.#client?.onMessage(received);
    });
  }

  /** In order, behind what is on its way. */
  #travel(direction: Direction, deliver: () => void): void {
    const { world } = this.#network;
    if (this.#network.maybeBreak(this.#connection)) return;
    this.#freeAtMs[direction] = Math.max(this.#freeAtMs[direction], world.nowMs + this.#network.delayMs());
    world.at(this.#freeAtMs[direction], () => this.#connection.arrive(direction, deliver));
  }
}

function answerTo<Method extends DescMethod>(method: Method) {
  return { service: method.parent, method, header: new Headers(), trailer: new Headers() };
}

function silent(): RolloutError {
  return failure("coordinator_silent", { address: ADDRESS });
}

/** As src/transport/errors.ts: a row travels, anything else is not told. */
function overTheWire(thrown: unknown): RolloutError {
  return thrown instanceof RolloutError
    ? thrown
    : failure("internal", { detail: "a handler failed" }, thrown);
}
