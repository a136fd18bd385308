// The way to the coordinator of a local run, which may come back at another address: one transport over whichever client is
// current.
import type { Transport } from "@connectrpc/connect";
import { failure } from "../../base/errors.ts";
import type { RolloutError } from "../../base/errors.ts";
import type { ClientConfig } from "../../config/resolve.ts";
import type { Logger } from "../../observe/log.ts";
import type { Client } from "../../transport/client.ts";
import { redirect } from "../../transport/redirected-iterable.ts";
import { openOperatorClient } from "../operator-client.ts";

export class Connection {
  readonly #log: Logger;
  #client: Client | undefined;
  #isClosed = false;
  #downfall: RolloutError | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Calls from now on go there. Throws tls_… rows. */
  async open(config: ClientConfig): Promise<void> {
    const client = await openOperatorClient(config, this.#log);
    this.#client?.close();
    if (this.#isClosed) client.close();
    else this.#client = client;
  }

  readonly transport: Transport = {
    unary: async (...call) => {
      try {
        return await this.#current.transport.unary(...call);
      } catch (error) {
        throw this.#downfall ?? error;
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

  /** There will be no coordinator, or nobody who works: calls from now on and those in flight reject with this. */
  fail(error: RolloutError): void {
    this.#downfall ??= error;
    this.close();
  }

  /** Calls in flight end as interrupted. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#client?.close();
  }

  get #current(): Client {
    if (this.#client === undefined) throw failure("interrupted", {});
    return this.#client;
  }
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
