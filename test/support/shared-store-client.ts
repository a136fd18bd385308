// A shared store as one of the processes has it open: a Store like any other, that several may have at once.
import { connect } from "node:net";
import type { Socket } from "node:net";
import { failure } from "../../src/base/errors.ts";
import { assertBatch, assertKey, assertOpen, assertRange } from "../../src/storage/store.ts";
import type { Batch, CommitOutcome, Entry, ScanRange, Store } from "../../src/storage/store.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import { EVERYTHING } from "./batch.ts";
import { readLines, sendLine } from "./shared-store-wire.ts";
import type { SharedAnswer, SharedCall } from "./shared-store-wire.ts";

type AnswerOf<Kind extends SharedAnswer["kind"]> = Extract<SharedAnswer, { kind: Kind }>;

/** `address` is the server's; `name` is how it calls this process. */
export async function openSharedStore(address: string, name: string): Promise<Store> {
  const [host, port] = address.split(":");
  const socket = connect({ host: host ?? "", port: Number(port), noDelay: true });
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  const store = new SharedStoreClient(socket, `shared ${address}`);
  await store.hello(name);
  return store;
}

class SharedStoreClient implements Store {
  readonly location: string;
  readonly supports = { multiProcess: true };
  everWritten = false;
  generation = "";
  readonly #socket: Socket;
  readonly #waiting = new Map<number, PromiseWithResolvers<SharedAnswer>>();
  #calls = 0;
  #isOpen = true;

  constructor(socket: Socket, location: string) {
    this.#socket = socket;
    this.location = location;
    socket.on("error", () => undefined);
    socket.on("close", () => {
      const lost = failure("store_write_failed", { path: location, reason: "the connection was lost" });
      for (const { reject } of this.#waiting.values()) reject(lost);
      this.#waiting.clear();
    });
    readLines<SharedAnswer>(socket, ({ number, message }) => {
      this.#waiting.get(number)?.resolve(message);
      this.#waiting.delete(number);
    });
  }

  async hello(name: string): Promise<void> {
    const { everWritten, generation } = await this.#ask("welcome", { kind: "hello", name });
    this.everWritten = everWritten;
    this.generation = generation;
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    assertOpen(this.#isOpen, this.location);
    assertKey(key);
    return (await this.#ask("value", { kind: "get", key })).value ?? undefined;
  }

  getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    return Promise.all(keys.map((key) => this.get(key)));
  }

  async scan(range: ScanRange): Promise<Entry[]> {
    assertOpen(this.#isOpen, this.location);
    assertRange(range);
    return [...(await this.#ask("entries", { kind: "scan", range })).entries];
  }

  /** One page is one view. */
  async freeze(): Promise<Store> {
    return new MemoryStore(await this.scan(EVERYTHING));
  }

  async commit(batch: Batch): Promise<CommitOutcome> {
    assertOpen(this.#isOpen, this.location);
    assertBatch(batch);
    try {
      const { outcome } = await this.#ask("outcome", { kind: "commit", batch });
      this.everWritten ||= outcome.kind === "committed";
      return outcome;
    } catch (cause) {
      return { kind: "unknown", cause: cause instanceof Error ? cause : new Error(String(cause)) };
    }
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    await Promise.allSettled([...this.#waiting.values()].map(({ promise }) => promise));
    this.#socket.destroy();
  }

  async #ask<Kind extends SharedAnswer["kind"]>(kind: Kind, call: SharedCall): Promise<AnswerOf<Kind>> {
    if (this.#socket.destroyed)
      throw failure("store_write_failed", { path: this.location, reason: "the connection was lost" });
    const number = ++this.#calls;
    const answer = Promise.withResolvers<SharedAnswer>();
    this.#waiting.set(number, answer);
    sendLine(this.#socket, { number, message: call });
    const message = await answer.promise;
    if (!isOfKind(message, kind)) throw new Error(`${kind} was asked, and ${message.kind} came`);
    return message;
  }
}

function isOfKind<Kind extends SharedAnswer["kind"]>(
  message: SharedAnswer,
  kind: Kind,
): message is AnswerOf<Kind> {
  return message.kind === kind;
}
