// Leaders whose connection to Postgres breaks in the middle of a commit, one after the other, and what the ledger holds after each:
// a seeded campaign over a real server. A leader writes by way of a proxy that cuts one of its commits; a successor claims the
// lease, and what it then sees is compared with what the leader was told.
import { sleep, systemClock } from "../../../src/base/clock.ts";
import type { RunId } from "../../../src/base/ids.ts";
import { seededRandom } from "../../../src/base/random.ts";
import type { Random } from "../../../src/base/random.ts";
import { StorageLease } from "../../../src/coordinator/lead/lease.ts";
import type { Leadership } from "../../../src/coordinator/lead/lease.ts";
import { prefixRange } from "../../../src/storage/store.ts";
import type { Batch, CommitOutcome, Expectation, Store } from "../../../src/storage/store.ts";
import { openPostgresStore } from "../../../src/storage/postgres/postgres-store.ts";
import { batchOf, putOf } from "../../support/batch.ts";
import { newRunId } from "../../support/certificates.ts";
import { noFigures } from "./commit-figures.ts";
import { hastyClock } from "../../support/hasty-clock.ts";
import { startPostgresProxy } from "./proxy.ts";
import { openTestStore, testStoreOptions } from "../../support/postgres-store.ts";
import type { PostgresProxy } from "./proxy.ts";
import type { CutPoint } from "./relay.ts";

const CUT_POINTS: readonly CutPoint[] = ["before", "request", "late", "during", "answer", "after"];
/** Failures that may be tried again: a conflict of transactions, a deadlock, no room, a lock that comes too late, a statement ended. */
const FAILURES = ["40001", "40P01", "53300", "55P03", "57014"];
/** One trouble of so many is such a failure in place of a cut. */
const TROUBLES_PER_FAILURE = 6;
/** One commit of so many is cut, but no more than so many of one leader. */
const COMMITS_PER_CUT = 3;
const CUTS_MAX = 4;
const BURSTS_MAX = 6;
const BURST_MAX = 6;
const ROWS_MAX = 4;
/** One leader of so many cannot reach the server again after a cut, until it has given up. */
const LEADERS_PER_OUTAGE = 8;
/** One claim of so many is cut as well. */
const CLAIMS_PER_CUT = 8;
/** How much sooner a store gives up where there is an outage. */
const HASTE = 50;
/** A commit that comes late comes so much later, or when a successor has claimed. */
const LATE_MAX_MS = 30;
/** Leaders whose rows are kept and compared once more: none may have come late. */
const KEPT_LEADERS = 50;

export interface CommitCampaignOptions {
  readonly seed: number;
  /** A database in which it makes tables of its own. */
  readonly url: string;
}

interface Told {
  readonly rows: readonly string[];
  readonly outcome: CommitOutcome;
}

interface Cuts {
  readonly each: number;
  readonly most: number;
  /** No connection can be made after the first. */
  readonly hasOutage: boolean;
  /** Resolves when another has claimed. */
  readonly followed: Promise<unknown>;
}

export class CommitCampaign {
  readonly figures = noFigures();
  readonly #random: Random;
  readonly #runId: RunId;
  readonly #proxy: PostgresProxy;
  /** The same store without the proxy between. */
  readonly #whole: Store;
  /** The rows of the latest leaders as their successors found them. */
  #kept: { readonly leader: number; readonly rows: string }[] = [];
  #highestEpoch = -1;
  /** The latest batch of the leader that changed the row of its count. */
  #counted: string | null = null;

  private constructor(seed: number, proxy: PostgresProxy, whole: Store, runId: RunId) {
    this.#random = seededRandom(seed);
    this.#proxy = proxy;
    this.#whole = whole;
    this.#runId = runId;
  }

  static async open({ seed, url }: CommitCampaignOptions): Promise<CommitCampaign> {
    const runId = newRunId();
    const whole = await openTestStore(url, runId);
    return new CommitCampaign(seed, await startPostgresProxy(url), whole, runId);
  }

  get cuts(): number {
    return Object.values(this.figures.cuts).reduce((sum, count) => sum + count, 0);
  }

  async close(): Promise<void> {
    await this.#compareKept();
    await this.#proxy.close();
    await this.#whole.close();
  }

  /** One leader, from its claim to that of its successor. */
  async lead(): Promise<void> {
    const leader = this.figures.leaders++;
    const hasOutage = this.#below(LEADERS_PER_OUTAGE) === 0;
    const store = await this.#openCut(hasOutage);
    const followed = Promise.withResolvers<undefined>();
    try {
      const leadership = await this.#claim(store, `leader-${leader}`);
      this.#cutSome({
        each: COMMITS_PER_CUT,
        most: CUTS_MAX,
        hasOutage,
        followed: followed.promise,
      });
      const told = await this.#write(store, leader, leadership.epochRow);
      this.#heal();
      await this.#succeed(leader);
      const found = await this.#rowsOf(leader);
      followed.resolve(undefined);
      this.#judge(leader, told, new Set(found));
      await this.#writeLate(store, leader, leadership.epochRow);
      this.#kept.push({ leader, rows: found.join() });
    } finally {
      this.#heal();
      await store.close();
    }
    if (this.#kept.length >= KEPT_LEADERS) await this.#compareKept();
  }

  /** By way of the proxy; one for an outage gives up sooner. */
  #openCut(hasOutage: boolean): Promise<Store> {
    const clock = hasOutage ? hastyClock(HASTE) : systemClock;
    return openPostgresStore({
      ...testStoreOptions(this.#proxy.url, this.#runId),
      clock,
    });
  }

  async #claim(store: Store, holder: string): Promise<Leadership> {
    const lease = new StorageLease(store, holder);
    const outcome = await lease.take(await lease.read());
    if (outcome.kind !== "taken") throw new Error(`${holder} did not get the lease: ${outcome.kind}`);
    return this.#gave(outcome.leadership);
  }

  #gave(leadership: Leadership): Leadership {
    const { epoch } = leadership;
    if (epoch <= this.#highestEpoch) this.#violated(`epoch ${epoch} was given after ${this.#highestEpoch}`);
    this.#highestEpoch = Math.max(this.#highestEpoch, epoch);
    return leadership;
  }

  /** The next leader, whose own claim is cut now and then and is made again by another. */
  async #succeed(leader: number): Promise<void> {
    if (this.#below(CLAIMS_PER_CUT) === 0) {
      const hasOutage = this.#below(2) === 0;
      const store = await this.#openCut(hasOutage);
      try {
        this.#cutSome({
          each: 1,
          most: 1,
          hasOutage,
          followed: sleep(systemClock, LATE_MAX_MS),
        });
        const lease = new StorageLease(store, `cut-${leader}`);
        const outcome = await lease.take(await lease.read());
        this.figures.cutClaims[outcome.kind]++;
        if (outcome.kind === "beaten")
          this.#violated(`the claim after leader ${leader} was beaten by nobody`);
        if (outcome.kind === "taken") this.#gave(outcome.leadership);
      } finally {
        this.#heal();
        await store.close();
      }
    }
    await this.#claim(this.#whole, `successor-${leader}`);
  }

  /** From now on one of `each` commits is cut or fails, `most` in all. */
  #cutSome({ each, most, hasOutage, followed }: Cuts): void {
    const proxy = this.#proxy;
    let left = most;
    proxy.decide((statement) => {
      if (!statement.commits || left === 0 || this.#below(each) > 0) return undefined;
      left--;
      if (this.#below(TROUBLES_PER_FAILURE) === 0) {
        this.figures.failures++;
        return { kind: "fail", code: this.#pick(FAILURES) };
      }
      const at = this.#pick(CUT_POINTS);
      this.figures.cuts[at]++;
      if (hasOutage) proxy.refuse(true);
      const until = this.#below(2) === 0 ? followed : sleep(systemClock, this.#below(LATE_MAX_MS));
      return { kind: "cut", at, how: this.#pick(["end", "reset"]), until };
    });
  }

  #heal(): void {
    this.#proxy.refuse(false);
    this.#proxy.decide();
  }

  /** Bursts of batches, as a leader pipelines its turns, until one of them is not committed. */
  async #write(store: Store, leader: number, epochRow: Expectation): Promise<Told[]> {
    const told: Told[] = [];
    this.#counted = null;
    for (let burst = 0; burst < BURSTS_MAX; burst++) {
      const batches = Array.from({ length: 1 + this.#below(BURST_MAX) }, (_, at) =>
        this.#batch(`${leader}/${told.length + at}`, `${leader}/${told.length + at - 1}`, epochRow),
      );
      const outcomes = await Promise.all(batches.map((batch) => store.commit(batch)));
      for (const [at, outcome] of outcomes.entries()) {
        this.figures.outcomes[outcome.kind]++;
        const keys = batches[at]?.puts.map(({ key }) => key) ?? [];
        told.push({ rows: keys.filter((key) => key.startsWith("rows/")), outcome });
      }
      if (outcomes.some(({ kind }) => kind !== "committed")) break;
    }
    return told;
  }

  /** Some expect the epoch alone, as turns do; some also a row of the batch before them, and some one that they change. */
  #batch(name: string, before: string, epochRow: Expectation): Batch {
    const puts = Array.from({ length: 1 + this.#below(ROWS_MAX) }, (_, at) =>
      putOf(`rows/${name}/${at}`, name),
    );
    const expect = [epochRow];
    const kind = this.#below(4);
    if (kind === 0 && !before.endsWith("/-1"))
      expect.push({ key: `rows/${before}/0`, value: Buffer.from(before) });
    if (kind === 1) {
      const key = countKey(Number.parseInt(name));
      expect.push({ key, value: this.#counted === null ? null : Buffer.from(this.#counted) });
      puts.push(putOf(key, name));
      this.#counted = name;
    }
    return batchOf({ puts, deletes: [`absent/${name}`], expect, durability: this.#pick(["sync", "flush"]) });
  }

  #judge(leader: number, told: readonly Told[], found: ReadonlySet<string>): void {
    let missing = false;
    for (const [at, { rows, outcome }] of told.entries()) {
      const there = rows.filter((row) => found.has(row)).length;
      const name = `batch ${at} of leader ${leader}, answered ${outcome.kind}`;
      if (there > 0 && there < rows.length)
        this.#violated(`${name}: ${there} of ${rows.length} rows are there`);
      if (outcome.kind === "committed" && there === 0) this.#violated(`${name}: lost`);
      if (outcome.kind === "conflict" && there > 0) this.#violated(`${name}: written`);
      if (outcome.kind === "conflict" && told.slice(0, at).every(isCommitted))
        this.#violated(`${name}: for no reason`);
      if (there > 0 && missing) this.#violated(`${name}: it is there, and one before it is not`);
      if (outcome.kind === "unknown" && there > 0) this.figures.unknownThere++;
      missing ||= there === 0;
    }
  }

  /** A leader that goes on although another has followed. */
  async #writeLate(store: Store, leader: number, epochRow: Expectation): Promise<void> {
    const outcome = await store.commit(
      batchOf({ puts: [putOf(`rows/${leader}/late`, "")], expect: [epochRow] }),
    );
    if (outcome.kind === "committed")
      this.#violated(`leader ${leader} wrote after its successor had claimed`);
  }

  async #rowsOf(leader: number): Promise<string[]> {
    const range = prefixRange(`rows/${leader}/`);
    return (await this.#whole.scan({ ...range, limit: 10_000 })).map(({ key }) => key);
  }

  /** Whether the rows are still those that the successors found; then they go. */
  async #compareKept(): Promise<void> {
    for (const { leader, rows } of this.#kept) {
      const now = await this.#rowsOf(leader);
      if (now.join() !== rows)
        this.#violated(`rows of leader ${leader} changed after its successor had looked`);
      await this.#whole.commit(batchOf({ deletes: [...now, countKey(leader)] }));
    }
    this.#kept = [];
  }

  #violated(what: string): void {
    this.figures.violations.push(what);
  }

  #below(count: number): number {
    return Math.floor(this.#random.unit() * count);
  }

  #pick<const T>(from: readonly T[]): T {
    return from[this.#below(from.length)] as T;
  }
}

function countKey(leader: number): string {
  return `counts/${leader}`;
}

function isCommitted({ outcome }: Told): boolean {
  return outcome.kind === "committed";
}
