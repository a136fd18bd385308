// A server that executes items of the http backend: it holds every request while it is closed, and answers at once while it is open. So
// a bench knows how many items are out, and sees the moment at which one more begins.
import { createServer } from "node:http";
import type { Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "../../src/base/clock.ts";

export class Gate {
  readonly #server: Server;
  readonly #held = new Set<ServerResponse>();
  readonly #waiting = new Set<() => void>();
  readonly #begunBy = new Map<string, number>();
  #isOpen = false;
  #begun = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** Closed. */
  static async make(): Promise<Gate> {
    const server = createServer((request, response) => {
      let body = "";
      request.on("data", (chunk: Buffer) => (body += chunk.toString()));
      request.on("end", () => gate.#begin(body, response));
    });
    const gate = new Gate(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return gate;
  }

  /** The text of a manifest of a plugin that asks this server. */
  get manifest(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `name = "gate"\nversion = "1"\nbackend = "http"\n\n[http]\nurl = "http://127.0.0.1:${port}/"\n`;
  }

  /** Executions that have begun so far. */
  get begun(): number {
    return this.#begun;
  }

  /** Executions that are held. */
  get held(): number {
    return this.#held.size;
  }

  /** Items that were begun more than once. */
  get begunAgain(): number {
    return [...this.#begunBy.values()].filter((count) => count > 1).length;
  }

  /** Everything that is held ends, and what begins ends at once, until `close`. */
  open(): void {
    this.#isOpen = true;
    for (const response of this.#held) response.end("{}");
    this.#held.clear();
  }

  close(): void {
    this.#isOpen = false;
  }

  /** Resolves with the monotonic time at which more than `count` have begun. */
  async untilBegun(count: number): Promise<number> {
    while (this.#begun <= count) await new Promise<void>((resolve) => this.#waiting.add(resolve));
    return systemClock.monotonicMs();
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => void this.#server.close(() => resolve()));
  }

  #begin(item: string, response: ServerResponse): void {
    this.#begun++;
    this.#begunBy.set(item, (this.#begunBy.get(item) ?? 0) + 1);
    response.once("close", () => this.#held.delete(response));
    if (this.#isOpen) response.end("{}");
    else this.#held.add(response);
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
