// The messages of one call as they arrive, each in one piece: counted before it is read, read no faster than there is room for,
// and cut off when it does not come to its end. Connect sees whole messages only, and buffers nothing.
import type { DescMessage } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { failure } from "../base/errors.ts";
import type { Clock } from "../base/clock.ts";
import { toConnectError } from "./errors.ts";
import type { Claim, IntakeAccount } from "./intake.ts";
import type { TransportLimits } from "./limits.ts";
import { hasMoreJsonParts, hasMoreParts } from "./message-parts.ts";

/** Flags and length, before each message of a stream. */
const HEAD_BYTES = 5;

/** A message that its handler goes on with after it has asked for the next one. */
export interface KeptMessage {
  /** It is this much larger in memory than it was on its way. */
  add(bytes: number): void;
  /** It is written or dropped. Idempotent. */
  release(): void;
}

export interface MessageReaderOptions {
  readonly chunks: AsyncIterable<Uint8Array>;
  /** `stream`: messages with a head each. `call`: one message that ends with the request. */
  readonly framing: "stream" | "call";
  /** The length of a call that declares one. */
  readonly declaredBytes: number | undefined;
  readonly method: string;
  readonly input: DescMessage;
  readonly isJson: boolean;
  readonly account: IntakeAccount;
  readonly clock: Clock;
  readonly limits: TransportLimits;
  /** Whether the sender has given up: then what has come is not a message. */
  readonly isAborted: () => boolean;
  /** The message takes too long: the caller closes the stream. */
  readonly onTooSlow: () => void;
  /** It is larger than one may be, or has more parts: the call fails. */
  readonly onTooLarge: () => void;
}

export class MessageReader implements AsyncIterableIterator<Uint8Array> {
  readonly #options: MessageReaderOptions;
  readonly #chunks: AsyncIterator<Uint8Array>;
  /** Claims for the message that is read, or that was read last and is not kept. */
  #claims: Claim[] = [];
  /** Bytes that came behind the last message. */
  #rest: Uint8Array = new Uint8Array();
  /** Bytes of the message that is being read. */
  #received = 0;
  #readingMs = 0;
  #isOver = false;
  #isClosed = false;

  constructor(options: MessageReaderOptions) {
    this.#options = options;
    this.#chunks = options.chunks[Symbol.asyncIterator]();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next message of a stream. By then the caller is done with the one before, or has kept it. */
  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    const isStream = this.#options.framing === "stream";
    if (isStream) this.release();
    if (this.#isOver) return { done: true, value: undefined };
    this.#received = 0;
    this.#readingMs = 0;
    try {
      const message = isStream ? await this.#readFramed() : await this.#readCall();
      if (!isStream || message === undefined) this.#isOver = true;
      if (message !== undefined) this.#demandFewParts(isStream ? message.subarray(HEAD_BYTES) : message);
      return message === undefined ? { done: true, value: undefined } : { done: false, value: message };
    } catch (error) {
      this.#isOver = true;
      this.release();
      throw error;
    }
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#isOver = true;
    if (this.#options.framing === "stream") this.release();
    await this.#chunks.return?.();
    return { done: true, value: undefined };
  }

  /** Leaves the account of the last message with the caller. */
  keep(): KeptMessage {
    const claims = this.#claims;
    this.#claims = [];
    return {
      add: (bytes) => claims[0]?.resize(claims[0].amount + bytes),
      release: () => {
        for (const claim of claims.splice(0)) claim.release();
      },
    };
  }

  /** The last message is dealt with. Idempotent. */
  release(): void {
    for (const claim of this.#claims.splice(0)) claim.release();
  }

  /** The stream is closed: who waits for room waits no longer. */
  close(): void {
    this.#isClosed = true;
    for (const claim of this.#claims) if (!claim.isGranted) claim.release();
  }

  async #readFramed(): Promise<Uint8Array | undefined> {
    let head = this.#rest;
    this.#rest = new Uint8Array();
    while (head.length < HEAD_BYTES) {
      const chunk = await this.#pull(head.length > 0);
      if (chunk === undefined && head.length === 0) return undefined;
      head = head.length === 0 ? this.#demand(chunk) : Buffer.concat([head, this.#demand(chunk)]);
    }
    const bytes = new DataView(head.buffer, head.byteOffset).getUint32(1);
    await this.#claim(bytes);
    const size = HEAD_BYTES + bytes;
    this.#rest = head.subarray(size);
    if (head.length >= size) return head.subarray(0, size);
    const message = Buffer.allocUnsafeSlow(size);
    message.set(head);
    for (let filled = head.length; filled < size;) {
      const chunk = this.#demand(await this.#pull(true));
      const part = chunk.subarray(0, size - filled);
      message.set(part, filled);
      filled += part.length;
      this.#rest = chunk.subarray(part.length);
    }
    return message;
  }

  /** In three steps, so that small calls that do not say how large they are need little room: small, the largest, as it is. */
  async #readCall(): Promise<Uint8Array> {
    const { account, declaredBytes } = this.#options;
    const { messageBytesMax: max, smallBytes } = account;
    let room = declaredBytes ?? Math.min(smallBytes, max);
    await this.#claim(room);
    let message = Buffer.alloc(0);
    let filled = 0;
    for (;;) {
      const chunk = await this.#pull(true);
      if (chunk === undefined) break;
      if (filled + chunk.length > room) {
        // A message that is larger than it may be is not read on.
        await this.#claim(Math.max(max, filled + chunk.length));
        room = max;
      }
      if (filled + chunk.length > message.length) {
        const longer = Buffer.allocUnsafeSlow(
          Math.min(room, Math.max(2 * message.length, filled + chunk.length)),
        );
        longer.set(message.subarray(0, filled));
        message = longer;
      }
      message.set(chunk, filled);
      filled += chunk.length;
    }
    this.#settle(filled);
    return message.subarray(0, filled);
  }

  #demandFewParts(message: Uint8Array): void {
    const { account, input, isJson } = this.#options;
    const limit = account.partsMax;
    if (!(isJson ? hasMoreJsonParts(message, limit) : hasMoreParts(input, message, limit))) return;
    this.#options.onTooLarge();
    throw toConnectError(failure("overloaded", { what: "the number of parts of a message", limit }));
  }

  /** Waits for room. */
  async #claim(bytes: number): Promise<void> {
    const { account, onTooLarge } = this.#options;
    if (bytes > account.messageBytesMax) onTooLarge();
    const claim = account.claim(bytes);
    this.#claims.push(claim);
    if (this.#isClosed) claim.release();
    if (!claim.isGranted && !(await claim.granted)) throw aborted();
  }

  /** Gives back room that was taken for bytes that might come. */
  #settle(bytes: number): void {
    const last = this.#claims.pop();
    this.release();
    last?.resize(bytes);
    if (last !== undefined) this.#claims.push(last);
  }

  /** Undefined at the end. `isTimed`: within the time that the message has. */
  async #pull(isTimed: boolean): Promise<Uint8Array | undefined> {
    const result = isTimed ? await this.#inTime() : await this.#chunks.next();
    if (this.#options.isAborted()) throw aborted();
    if (result.done === true) return undefined;
    this.#received += result.value.length;
    return result.value;
  }

  async #inTime(): Promise<IteratorResult<Uint8Array>> {
    const { clock, limits, onTooSlow } = this.#options;
    const allowedMs = limits.messageTimeoutMs + (1_000 * this.#received) / limits.slowestBytesPerSecond;
    const startedMs = clock.monotonicMs();
    const timer = clock.after(
      Math.max(0, allowedMs - this.#readingMs),
      () => {
        this.release();
        onTooSlow();
      },
      { background: true },
    );
    try {
      return await this.#chunks.next();
    } finally {
      timer.cancel();
      this.#readingMs += clock.monotonicMs() - startedMs;
    }
  }

  #demand(chunk: Uint8Array | undefined): Uint8Array {
    if (chunk !== undefined) return chunk;
    const reason = "it ends within a message";
    throw toConnectError(failure("request_invalid", { method: this.#options.method, reason }));
  }
}

function aborted(): ConnectError {
  return new ConnectError("the call was given up by its caller", Code.Canceled);
}
