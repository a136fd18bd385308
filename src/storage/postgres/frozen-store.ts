// A store as it is at one moment, to be read while others go on writing: one transaction that sees nothing newer, on a connection of its own.
import { assert } from "../../base/assert.ts";
import { turnstile } from "../../base/turnstile.ts";
import { assertKey, assertOpen, assertRange } from "../store.ts";
import type { CommitOutcome, Entry, ScanRange, Store } from "../store.ts";
import type { Connection } from "./connection.ts";
import { readMany, readOne, readRange } from "./readers.ts";
import type { Asking } from "./readers.ts";
import { BEGIN_FROZEN, FREEZE } from "./statements.ts";
import type { Statements } from "./statements.ts";

const ANSWER_MS = 30_000;

export class FrozenStore implements Store {
  readonly location: string;
  readonly supports = { multiProcess: true };
  readonly everWritten: boolean;
  readonly generation: string;
  readonly #connection: Connection;
  readonly #statements: Statements;
  readonly #takeTurn = turnstile();
  #isOpen = true;

  private constructor(live: Store, connection: Connection, statements: Statements) {
    this.location = live.location;
    this.everWritten = live.everWritten;
    this.generation = connection.facts.generation;
    this.#connection = connection;
    this.#statements = statements;
  }

  /** The connection is the frozen store's from now on. Rejects with what the driver says. */
  static async begin(live: Store, connection: Connection, statements: Statements): Promise<FrozenStore> {
    try {
      await connection.ask(BEGIN_FROZEN, [], ANSWER_MS);
      await connection.ask(FREEZE, [], ANSWER_MS);
    } catch (error) {
      connection.end();
      throw error;
    }
    return new FrozenStore(live, connection, statements);
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    assertOpen(this.#isOpen, this.location);
    assertKey(key);
    return readOne(this.#ask, this.#statements, key);
  }

  async getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    assertOpen(this.#isOpen, this.location);
    keys.forEach(assertKey);
    return readMany(this.#ask, this.#statements, keys);
  }

  async scan(range: ScanRange): Promise<Entry[]> {
    assertOpen(this.#isOpen, this.location);
    assertRange(range);
    return readRange(this.#ask, this.#statements, range);
  }

  async commit(): Promise<CommitOutcome> {
    assert(false, "nothing is written to a frozen store");
  }

  /** Ends the transaction with its connection: the server need not keep what it sees any more. */
  async close(): Promise<void> {
    this.#isOpen = false;
    await this.#takeTurn(() => this.#connection.close());
  }

  /** One question after the other: a connection has one at a time. */
  readonly #ask: Asking = (text, values) =>
    this.#takeTurn(() => this.#connection.ask(text, values, ANSWER_MS));
}
