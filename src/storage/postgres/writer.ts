// The writer of a Postgres store: one group after the other on one connection, which is made again when it is lost. It counts its
// groups in a row of its own, in the same statement as the group. So after a lost answer the row says whether the group took effect; and
// a server that has lost what it had answered, or was set back, shows a count that is too low.
//
// Keeps true: a group takes effect once or not at all, and never after a later one: a new connection first takes the row over, which
// waits for what the old one still does and shuts the door on the rest. Taking over is a commit that lasts, so what is found
// behind it lasts too. After a count that is too low nothing is written any more that rests on what was written before: batches that expect
// a row which this writer has relied on, as the turns of a leader do. Claims and rows of one's own expect what they change: they go on.
import { AssertionFailed } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { describeError, failure } from "../../base/errors.ts";
import type { RolloutError } from "../../base/errors.ts";
import { backoffMs } from "../../base/random.ts";
import type { Random } from "../../base/random.ts";
import type { Logger } from "../../observe/log.ts";
import type { GroupWriter } from "../group-commit.ts";
import type { Batch, CommitOutcome } from "../store.ts";
import type { Connection, Row } from "./connection.ts";
import { fenceOf, mayShare } from "./group-plan.ts";
import type { Hosts } from "./hosts.ts";
import { writeGroup } from "./lane.ts";
import { meaningOf } from "./outcomes.ts";
import type { Statements } from "./statements.ts";

export interface WriterOptions {
  readonly hosts: Hosts;
  readonly statements: Statements;
  /** Unique; ids of later writers are greater. Undefined: what this writer writes is not counted, and a lost answer stays `unknown`. */
  readonly id: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** How long an answer is waited for; then the connection is given up. */
  readonly answerMs: number;
  /** The same where the connection was used before and the commit waits for no standby: silence means that the host is gone. */
  readonly silenceMs: number;
  /** How long from the first failure a lost answer is looked for, and a server that takes nothing is tried again. */
  readonly patienceMs: number;
  /** Whether anything was ever committed to the store. */
  readonly wasWritten: () => boolean;
  readonly onWritten: () => void;
  /** Waited for before a group is written. */
  readonly before?: (group: readonly Batch[]) => Promise<void>;
}

/** After so long somebody should hear of it: a standby is gone, or the server hangs. */
const STALLED_MS = 2_000;
const RETRIES = { baseMs: 20, ceilingMs: 500 } as const;
const TRIES_MAX = 40;
/** How long at least the same is tried again where the server has said that nothing was written. */
const AGAIN_MS = 1_000;

type Attempt =
  | { readonly kind: "answered"; readonly outcomes: readonly CommitOutcome[] }
  | { readonly kind: "failed"; readonly cause: unknown; readonly isFinal: boolean };

export class PostgresWriter implements GroupWriter {
  readonly #options: WriterOptions;
  #connection: Connection | undefined;
  /** Nothing was written on the connection yet. */
  #isNew = true;
  /** The server gives a greater one to each connection that takes over. */
  #session = -1;
  #hasRow = false;
  /** The last that is known to have taken effect. */
  #turn = 0;
  /** Sent, and its answer is not known: what it is if the next turn took effect. */
  #sent: readonly CommitOutcome[] | undefined;
  /** The answers to what was sent, found on a new connection. */
  #settled: readonly CommitOutcome[] | undefined;
  #setBack: RolloutError | undefined;
  /** Expected by batches so far, and not changed by them. */
  readonly #relied = new Set<string>();
  /** The same of batches whose answer was `unknown`, or before the server was set back. */
  readonly #doubted = new Set<string>();

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  mayShare(first: Batch, next: Batch): boolean {
    return mayShare(first, next);
  }

  async write(group: readonly Batch[]): Promise<readonly CommitOutcome[]> {
    const { hosts, clock, random, log, patienceMs } = this.#options;
    const unknown = (cause: Error): readonly CommitOutcome[] => group.map(() => ({ kind: "unknown", cause }));
    if (this.#isDoubted(group))
      return unknown(this.#setBack ?? this.#failure("an earlier batch of the same leader has no answer"));
    for (const batch of group)
      for (const expectation of unchangedBy(batch)) this.#relied.add(fenceOf(expectation));
    await this.#options.before?.(group);
    let giveUpMs: number | undefined;
    let stalled = clock.after(STALLED_MS, () => {
      log.warn("a commit is not answered", { after_ms: STALLED_MS });
      lookAgain();
    });
    // It may wait for a standby that was promoted.
    const lookAgain = (): void => {
      void hosts.lookForNewer();
      stalled = clock.after(STALLED_MS, lookAgain);
    };
    try {
      for (let tries = 1; ; tries++) {
        const attempt = await this.#attempt(group);
        if (attempt.kind === "answered") return attempt.outcomes;
        const nowMs = clock.monotonicMs();
        giveUpMs ??= nowMs + Math.max(patienceMs, AGAIN_MS);
        const isOver = attempt.isFinal || tries >= TRIES_MAX || nowMs >= giveUpMs;
        if (isOver) {
          const setBack = attempt.cause === this.#setBack ? this.#setBack : undefined;
          return unknown(setBack ?? this.#failure(describeError(attempt.cause), attempt.cause));
        }
        await sleep(clock, backoffMs(RETRIES, tries, random));
      }
    } finally {
      stalled.cancel();
      this.#sent = undefined;
    }
  }

  /** A batch that expects what one of these did would take effect although one before it is perhaps missing. */
  onUnknown(batches: readonly Batch[]): void {
    for (const batch of batches)
      for (const expectation of unchangedBy(batch)) this.#doubted.add(fenceOf(expectation));
  }

  /** Nothing is on its way. Never rejects. */
  async close(): Promise<void> {
    const connection = this.#connection;
    const { id, statements, silenceMs } = this.#options;
    if (connection === undefined) return;
    if (this.#hasRow && id !== undefined && !connection.isLost)
      await connection.ask(statements.removeWriter, [id], silenceMs).catch(() => undefined);
    await connection.close();
  }

  #isDoubted(group: readonly Batch[]): boolean {
    if (this.#doubted.size === 0) return false;
    return group.some((batch) =>
      unchangedBy(batch).some((expectation) => this.#doubted.has(fenceOf(expectation))),
    );
  }

  async #attempt(group: readonly Batch[]): Promise<Attempt> {
    const { statements, id } = this.#options;
    let isWriting = false;
    try {
      const connection = await this.#connected();
      if (this.#isDoubted(group)) return { kind: "failed", cause: this.#setBack, isFinal: true };
      const settled = this.#settled;
      this.#settled = undefined;
      if (settled !== undefined) return { kind: "answered", outcomes: settled };
      connection.takeUnreplicated();
      const isFirst = id !== undefined && !this.#options.wasWritten();
      const number = this.#turn + 1;
      isWriting = true;
      const written = await writeGroup(connection, {
        ...{ group, statements, isFirst, limitMs: this.#limitMs(connection, group) },
        turn: id === undefined ? undefined : { writer: id, session: this.#session, number },
        onSent: (outcomes) => (this.#sent = outcomes),
      });
      this.#sent = undefined;
      this.#isNew = false;
      if (written.hasCommitted) this.#took(number);
      return { kind: "answered", outcomes: this.#lasting(connection, written.outcomes) };
    } catch (error) {
      return this.#failed(error, isWriting);
    }
  }

  #limitMs({ facts }: Connection, group: readonly Batch[]): number {
    const { answerMs, silenceMs } = this.#options;
    const waitsForStandby = facts.hasStandby && group.some(({ durability }) => durability === "sync");
    return waitsForStandby || this.#isNew ? answerMs : silenceMs;
  }

  #took(turn: number): void {
    this.#turn = turn;
    if (!this.#options.wasWritten()) this.#options.onWritten();
  }

  /** Committed by a server that gave up waiting for its standby: it lasts there and nowhere else. */
  #lasting(connection: Connection, outcomes: readonly CommitOutcome[]): readonly CommitOutcome[] {
    if (!connection.takeUnreplicated()) return outcomes;
    const cause = this.#failure("the server stopped waiting for its standby: it is committed there alone");
    return outcomes.map((outcome) => (outcome.kind === "committed" ? { kind: "unknown", cause } : outcome));
  }

  #failed(error: unknown, isWriting: boolean): Attempt {
    if (error instanceof AssertionFailed) throw error;
    const { patienceMs } = this.#options;
    const meaning = meaningOf(error);
    if (meaning !== "lost") {
      // The server has said that nothing was written; but when the writer's row was taken over, only of that.
      if (isWriting) this.#sent = undefined;
      return { kind: "failed", cause: error, isFinal: meaning === "refused" };
    }
    this.#connection?.end();
    this.#connection = undefined;
    return { kind: "failed", cause: error, isFinal: patienceMs === 0 };
  }

  async #connected(): Promise<Connection> {
    const { hosts, id } = this.#options;
    if (this.#connection?.isLost === false) return this.#connection;
    this.#connection = undefined;
    const connection = await hosts.connect();
    try {
      if (id !== undefined) await this.#takeOver(connection, id);
    } catch (error) {
      connection.end();
      throw error;
    }
    this.#connection = connection;
    this.#isNew = true;
    return connection;
  }

  async #takeOver(connection: Connection, id: string): Promise<void> {
    const { statements, answerMs } = this.#options;
    if (!this.#hasRow) await this.#makeRow(connection, id);
    connection.takeUnreplicated();
    const { lasting } = connection.facts;
    const { rows } = await connection.ask(statements.takeOver, [id, lasting], answerMs);
    this.#session = numberIn(rows[0]?.["session"]);
    const found = numberIn(rows[0]?.["turn"]);
    if (found < this.#turn) return this.#wasSetBack(connection, id, found);
    const sent = this.#sent;
    this.#sent = undefined;
    if (found === this.#turn) return;
    this.#took(found);
    // Nobody waits for the answer of a group that was given up.
    if (sent !== undefined) this.#settled = this.#lasting(connection, sent);
  }

  /** The count goes on from where the server is. */
  async #wasSetBack(connection: Connection, id: string, found: number): Promise<void> {
    this.#options.log.error("the database was set back", { found, answered: this.#turn });
    const last = found < 0 ? "it knows nothing of this writer" : `the last commit there is number ${found}`;
    this.#setBack = this.#failure(`it was set back: ${last}, and ${this.#turn} were answered`);
    for (const fence of this.#relied) this.#doubted.add(fence);
    this.#relied.clear();
    this.#sent = undefined;
    this.#turn = Math.max(found, 0);
    if (found >= 0) return;
    this.#hasRow = false;
    await this.#takeOver(connection, id);
  }

  async #makeRow(connection: Connection, id: string): Promise<void> {
    const { statements, answerMs } = this.#options;
    await connection.ask(statements.insertWriter, [id], answerMs);
    this.#hasRow = true;
    await connection.ask(statements.trimWriters, [], answerMs);
  }

  #failure(reason: string, cause?: unknown): RolloutError {
    return failure("store_write_failed", { path: this.#options.hosts.location, reason }, cause);
  }
}

/** -1 where there is no row. */
function numberIn(column: Row[string] | undefined): number {
  return typeof column === "string" ? Number(column) : -1;
}

function unchangedBy({ expect, puts, deletes }: Batch): Batch["expect"] {
  return expect.filter(({ key }) => !deletes.includes(key) && !puts.some((put) => put.key === key));
}
