// Connections for reading: a few, made when they are needed, each with one question at a time. A question whose connection is lost is
// asked again on another one, for some seconds, so that a server that is taken over meanwhile is not noticed by the reader. A host that
// vanishes says no word: a connection that was used before is waited for shortly, and with it go all that lie idle.
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { describeError, failure, RolloutError } from "../../base/errors.ts";
import { backoffMs } from "../../base/random.ts";
import type { Random } from "../../base/random.ts";
import type { Entry, ScanRange } from "../store.ts";
import { bytesOfKey, keyArray, keyOfBytes } from "./bytea.ts";
import type { Answer, Connection, Parameter, Row } from "./connection.ts";
import type { Hosts } from "./hosts.ts";
import { meaningOf } from "./outcomes.ts";
import type { Statements } from "./statements.ts";

const READERS_MAX = 4;
/** On a connection that was just made, and whose server has just answered. */
const ANSWER_MS = 10_000;
/** On one that was used before: the server may be gone since. */
const SILENCE_MS = 3_000;
/** Behind it nothing is asked again that was asked twice. */
const PATIENCE_MS = 10_000;
const RETRIES = { baseMs: 20, ceilingMs: 500 } as const;

export type Asking = (text: string, values: readonly Parameter[]) => Promise<Answer>;

export class Readers {
  readonly #hosts: Hosts;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #idle: Connection[] = [];
  readonly #waiting: (() => void)[] = [];
  readonly #asked = new Set<Promise<unknown>>();
  #busy = 0;

  constructor({
    hosts,
    clock,
    random,
  }: {
    readonly hosts: Hosts;
    readonly clock: Clock;
    readonly random: Random;
  }) {
    this.#hosts = hosts;
    this.#clock = clock;
    this.#random = random;
  }

  /** Throws store_unreachable, store_unusable, or what the server says. */
  readonly ask: Asking = (text, values) => {
    const answer = this.#ask(text, values);
    const settled = answer.catch(() => undefined).finally(() => this.#asked.delete(settled));
    this.#asked.add(settled);
    return answer;
  };

  /** When nothing is being read any more. Never rejects. */
  async close(): Promise<void> {
    await Promise.all(this.#asked);
    await Promise.all(this.#idle.splice(0).map((connection) => connection.close()));
  }

  async #ask(text: string, values: readonly Parameter[]): Promise<Answer> {
    const giveUpMs = this.#clock.monotonicMs() + PATIENCE_MS;
    for (let tries = 1; ; tries++) {
      try {
        return await this.#onConnection((connection, limitMs) => connection.ask(text, values, limitMs));
      } catch (error) {
        const isLate = tries > 1 && this.#clock.monotonicMs() >= giveUpMs;
        const isOver = isLate || meaningOf(error) === "refused";
        if (isOver || (error instanceof RolloutError && error.code === "store_unusable"))
          throw this.#asRow(error);
      }
      await sleep(this.#clock, backoffMs(RETRIES, tries, this.#random));
    }
  }

  async #onConnection<T>(use: (connection: Connection, limitMs: number) => Promise<T>): Promise<T> {
    while (this.#busy >= READERS_MAX) await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    this.#busy++;
    let connection: Connection | undefined;
    try {
      do connection = this.#idle.pop();
      while (connection?.isLost === true);
      if (connection !== undefined) return await use(connection, SILENCE_MS);
      connection = await this.#hosts.connect();
      return await use(connection, ANSWER_MS);
    } finally {
      this.#busy--;
      if (connection?.isLost === false) this.#idle.push(connection);
      if (connection?.isLost === true) for (const idle of this.#idle.splice(0)) idle.end();
      this.#waiting.shift()?.();
    }
  }

  #asRow(error: unknown): Error {
    if (error instanceof RolloutError) return error;
    return failure("store_unreachable", { path: this.#hosts.location, reason: describeError(error) }, error);
  }
}

export async function readOne(
  ask: Asking,
  { get }: Statements,
  key: string,
): Promise<Uint8Array | undefined> {
  const { rows } = await ask(get, [bytesOfKey(key)]);
  const value = rows[0]?.["value"];
  return value instanceof Uint8Array ? value : undefined;
}

export async function readMany(
  ask: Asking,
  { getMany }: Statements,
  keys: readonly string[],
): Promise<readonly (Uint8Array | undefined)[]> {
  if (keys.length === 0) return [];
  const { rows } = await ask(getMany, [keyArray([...new Set(keys)])]);
  const found = new Map(entriesOf(rows).map(({ key, value }) => [key, value]));
  // Each its own bytes, although a key may be asked for twice.
  return keys.map((key) => found.get(key)?.slice());
}

export async function readRange(ask: Asking, statements: Statements, range: ScanRange): Promise<Entry[]> {
  const { from, to, limit, bytesMax } = range;
  const bounds = [bytesOfKey(from), bytesOfKey(to), limit];
  const answer =
    bytesMax === undefined ? ask(statements.scan, bounds) : ask(statements.scanWithin, [...bounds, bytesMax]);
  return entriesOf((await answer).rows);
}

function entriesOf(rows: readonly Row[]): Entry[] {
  return rows.flatMap(({ key, value }) =>
    key instanceof Uint8Array && value instanceof Uint8Array ? [{ key: keyOfBytes(key), value }] : [],
  );
}
