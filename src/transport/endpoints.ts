// The coordinators that a client may ask, of which one leads: those that it was given, and a few that others have named. Keeps which of
// them answered last, and when the next round through all of them may begin. Keeps true: in one round each is asked once at
// most, and no round waits for one that was silent while there are others, until it can be connected to; between rounds that
// found no leader there is a wait with jitter; a coordinator that is named by one with an older epoch than is known is no news.
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import type { ErrorCode } from "../base/errors.ts";
import { failure, RolloutError } from "../base/errors.ts";
import type { Random } from "../base/random.ts";
import type { CallFailure } from "./call-failure.ts";
import type { Route } from "./endpoint.ts";
import { Endpoint } from "./endpoint.ts";
import type { LeaderHint } from "./leader-hint.ts";
import { leaderHintOf } from "./leader-hint.ts";
import type { TransportLimits } from "./limits.ts";

export interface EndpointsOptions {
  /** Each `host:port`; one at least. */
  readonly addresses: readonly string[];
  readonly open: (address: string) => Route;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits: TransportLimits;
  /** That the one at the first address does not lead is its last word. */
  readonly isAlone: boolean;
}

/** Failures that are one coordinator's and no word of the leader: another one may answer. */
const OF_ONE_COORDINATOR: ReadonlySet<ErrorCode> = new Set([
  "not_leader",
  "coordinator_name_not_found",
  "coordinator_refused_connection",
  "coordinator_silent",
  "coordinator_not_trusted",
  "certificate_refused",
]);

/** The first wait between two rounds; it doubles up to `roundCeilingMs`. */
const ROUND_BASE_MS = 50;
const REST_MS = 2_000;
/** Clients that are told to come back at one moment come spread over so long. */
const SPREAD_MS = 250;
/** A round that looks for the leader is left to do so alone for so long: what it finds all calls take. */
const SEARCH_MS = 250;
const SEARCH_LOOK_MS = 10;

export class Endpoints {
  readonly #options: EndpointsOptions;
  #all: Endpoint[];
  #current: Endpoint;
  /** The highest of a leader that a coordinator has named. */
  #epoch = -1;
  #failedRounds = 0;
  #nextRoundMs = -Infinity;
  #lastFailure: RolloutError | undefined;
  /** When the round began that is looking for the leader; undefined when none is. */
  #searchSinceMs: number | undefined;

  constructor(options: EndpointsOptions) {
    this.#options = options;
    const make = (address: string): Endpoint => new Endpoint(address, true, options.open);
    const [first = "", ...others] = new Set(options.addresses);
    this.#current = make(first);
    this.#all = [this.#current, ...others.map(make)];
  }

  /** Visits to the coordinators, for one call. */
  round(): Round {
    const { clock } = this.#options;
    this.#searchSinceMs = clock.monotonicMs();
    for (const endpoint of this.#all) if (endpoint.isDoubted) void this.#probe(endpoint);
    const { isDoubted } = this.#current;
    const first = (isDoubted ? this.#other(new Set([this.#current])) : undefined) ?? this.#current;
    return new Round(first, {
      clock,
      next: (asked, hint) => this.#hinted(asked, hint) ?? this.#other(asked),
      answered: (endpoint) => this.#answered(endpoint),
      failed: (endpoint, said, tookMs) => this.#failed(endpoint, said, tookMs),
      brokeOff: (endpoint, said) => this.#brokeOff(endpoint, said),
      ended: (error, retryAfterMs) => {
        this.#lastFailure = error;
        this.#pause(retryAfterMs);
      },
      all: () => this.#all,
      isAlone: this.#options.isAlone,
      slowSilenceMs: this.#options.limits.slowSilenceMs,
    });
  }

  /** How long a round that has found no leader is to be waited for yet. */
  get pauseMs(): number {
    return Math.max(0, this.#nextRoundMs - this.#options.clock.monotonicMs());
  }

  /** The end of the round before, when the next one may not begin within that time. */
  refusal(withinMs: number): RolloutError | undefined {
    return this.pauseMs > withinMs ? this.#lastFailure : undefined;
  }

  /** Resolves when the next round may begin, `mostMs` has passed, or the signal aborts. */
  async rested(mostMs: number, signal: AbortSignal | undefined): Promise<void> {
    const { clock } = this.#options;
    const endMs = clock.monotonicMs() + mostMs;
    for (;;) {
      const nowMs = clock.monotonicMs();
      const waitMs = Math.min(this.pauseMs || (this.#isSearched(nowMs) ? SEARCH_LOOK_MS : 0), endMs - nowMs);
      if (waitMs <= 0 || signal?.aborted === true) return;
      await sleep(clock, waitMs, signal);
    }
  }

  /** Whether another call is looking for the leader, after a round that has not found it. */
  #isSearched(nowMs: number): boolean {
    const sinceMs = this.#searchSinceMs;
    return this.#failedRounds > 0 && sinceMs !== undefined && nowMs - sinceMs < SEARCH_MS;
  }

  /** The coordinator that answered last is not to be asked first, where there is another: its calls in flight end. False without one. */
  doubt(): boolean {
    if (this.#all.length === 1) return false;
    this.#doubt(this.#current);
    this.#current.end();
    return true;
  }

  /** The next calls are made over new connections. */
  renew(): void {
    for (const endpoint of this.#all) endpoint.renew();
  }

  end(): void {
    for (const endpoint of this.#all) endpoint.end();
  }

  #answered(endpoint: Endpoint): void {
    this.#searchSinceMs = undefined;
    endpoint.said = undefined;
    endpoint.isDoubted = false;
    [this.#failedRounds, this.#nextRoundMs] = [0, -Infinity];
    if (this.#current === endpoint) return;
    this.#current = endpoint;
    // A stream to one that led before would wait for frames that do not come.
    for (const other of this.#all) if (other !== endpoint) other.end();
  }

  #failed(endpoint: Endpoint, said: CallFailure, tookMs: number): void {
    endpoint.said = said;
    const { code } = said.error;
    const isSilent = code === "coordinator_silent" && tookMs >= this.#options.limits.slowSilenceMs;
    if (isSilent && this.#all.length > 1) this.#doubt(endpoint);
  }

  /** A link that broke says nothing of the process behind it: a connection is tried at once, and no call waits for that. */
  #brokeOff(endpoint: Endpoint, said: CallFailure): void {
    endpoint.said = said;
    if (said.error.code !== "coordinator_silent" || this.#all.length === 1) return;
    this.#doubt(endpoint);
    endpoint.restsUntilMs = -Infinity;
    void this.#probe(endpoint);
  }

  #doubt(endpoint: Endpoint): void {
    const { clock, random } = this.#options;
    if (!endpoint.isDoubted) endpoint.namedEpoch = undefined;
    endpoint.isDoubted = true;
    endpoint.restsUntilMs = clock.monotonicMs() + REST_MS * (0.5 + random.unit());
  }

  /** Beside the rounds, which go on without it: a host that is gone takes seconds to say nothing. Never rejects. */
  async #probe(endpoint: Endpoint): Promise<void> {
    if (endpoint.isProbed || endpoint.restsUntilMs > this.#options.clock.monotonicMs()) return;
    endpoint.isProbed = true;
    // A connection that cannot even be tried is none.
    const isThere = await endpoint.route.link.probe().catch(() => false);
    endpoint.isProbed = false;
    if (isThere) endpoint.isDoubted = false;
    else if (endpoint.isDoubted) this.#doubt(endpoint);
  }

  /** The coordinator that is named, if it is news and was not asked yet. */
  #hinted(asked: ReadonlySet<Endpoint>, hint: LeaderHint | undefined): Endpoint | undefined {
    if (hint?.address === undefined || hint.epoch < this.#epoch) return undefined;
    this.#epoch = hint.epoch;
    const endpoint =
      this.#all.find(({ address }) => address === hint.address) ?? this.#remember(hint.address);
    endpoint.namedEpoch ??= hint.epoch;
    if (hint.epoch > endpoint.namedEpoch) endpoint.isDoubted = false;
    return asked.has(endpoint) || endpoint.isDoubted ? undefined : endpoint;
  }

  #remember(address: string): Endpoint {
    const told = this.#all.filter((endpoint) => !endpoint.isGiven && endpoint !== this.#current);
    const [oldest] = told.length >= this.#options.limits.maxHinted ? told : [];
    oldest?.end();
    const endpoint = new Endpoint(address, false, this.#options.open);
    this.#all = [...this.#all.filter((known) => known !== oldest), endpoint];
    return endpoint;
  }

  /** Any of the others, so that those who lost the same leader do not all go to the same one. */
  #other(asked: ReadonlySet<Endpoint>): Endpoint | undefined {
    const left = this.#all.filter((endpoint) => !asked.has(endpoint) && !endpoint.isDoubted);
    return left[Math.floor(this.#options.random.unit() * left.length)];
  }

  #pause(retryAfterMs: number): void {
    const { clock, random, limits } = this.#options;
    const capMs = Math.min(limits.roundCeilingMs, ROUND_BASE_MS * 2 ** Math.min(this.#failedRounds, 10));
    this.#failedRounds++;
    this.#searchSinceMs = undefined;
    const jittered = (1 + random.unit()) / 2;
    const toldMs = retryAfterMs + Math.min(retryAfterMs / 4, SPREAD_MS) * random.unit();
    this.#nextRoundMs = clock.monotonicMs() + Math.max(capMs * jittered, toldMs);
  }
}

/** The sides of `Endpoints` that a round uses. */
interface Rounds {
  readonly clock: Clock;
  readonly next: (asked: ReadonlySet<Endpoint>, hint: LeaderHint | undefined) => Endpoint | undefined;
  readonly answered: (endpoint: Endpoint) => void;
  readonly failed: (endpoint: Endpoint, said: CallFailure, tookMs: number) => void;
  readonly brokeOff: (endpoint: Endpoint, said: CallFailure) => void;
  readonly ended: (error: RolloutError, retryAfterMs: number) => void;
  readonly all: () => readonly Endpoint[];
  readonly isAlone: boolean;
  readonly slowSilenceMs: number;
}

/** The end of a round that found no leader, or was refused by it. */
export interface RoundFailure extends CallFailure {
  /** A coordinator lives and follows: a leader is to be expected. */
  readonly isFollowed: boolean;
  /** There were several to ask: the next round is waited for as `pauseMs` says. */
  readonly isPaused: boolean;
}

/** One visit to each coordinator at most, the likeliest first. */
export class Round {
  readonly #rounds: Rounds;
  readonly #said = new Map<Endpoint, CallFailure>();
  #named: Endpoint | undefined;
  #at: Endpoint;
  #sinceMs: number;

  /** @internal */
  constructor(first: Endpoint, rounds: Rounds) {
    this.#rounds = rounds;
    this.#at = first;
    this.#sinceMs = rounds.clock.monotonicMs();
  }

  /** Whom to ask now. */
  get at(): Endpoint {
    return this.#at;
  }

  /** The one that is asked has answered, as only a leader does. */
  answered(): void {
    this.#rounds.answered(this.#at);
  }

  /** The one that has answered broke off: the calls that follow ask it again, or another one where it was silent for long. */
  brokeOff(said: CallFailure): void {
    if (OF_ONE_COORDINATOR.has(said.error.code)) this.#rounds.brokeOff(this.#at, said);
  }

  /** Takes what became of the visit. Undefined: there is another one to ask, `at`. `isLast`: there is no time left for one. */
  failed(thrown: CallFailure, isLast: boolean): RoundFailure | undefined {
    const { clock, next, ended, isAlone, slowSilenceMs } = this.#rounds;
    const tookMs = clock.monotonicMs() - this.#sinceMs;
    // Time that ran out in the middle of a visit says nothing of the coordinator: its last word stands.
    const isCutShort = isLast && thrown.error.code === "coordinator_silent" && tookMs < slowSilenceMs;
    const said = (isCutShort ? this.#at.said : undefined) ?? thrown;
    const isWord = isAlone && said.error.code === "not_leader";
    if (isWord || !OF_ONE_COORDINATOR.has(said.error.code))
      return { ...said, isFollowed: false, isPaused: false };
    this.#said.set(this.#at, said);
    this.#rounds.failed(this.#at, said, tookMs);
    const hint = leaderHintOf(said.error);
    const following = isLast ? undefined : next(new Set(this.#said.keys()), hint);
    if (following === undefined) {
      const outcome = this.#outcome();
      if (outcome.isPaused) ended(outcome.error, this.#retryAfterMs());
      return outcome;
    }
    if (following.address === hint?.address) this.#named = following;
    [this.#at, this.#sinceMs] = [following, clock.monotonicMs()];
    return undefined;
  }

  #outcome(): RoundFailure {
    const failures = [...this.#said.values()];
    const named = this.#named === undefined ? undefined : this.#said.get(this.#named);
    // The leader itself has said that there is no use in asking it. A stranger at its address has no say.
    if (named?.error.code === "certificate_refused") return { ...named, isFollowed: false, isPaused: true };
    const isFollowed = failures.some(({ error }) => error.code === "not_leader");
    const isAlone = this.#rounds.all().length === 1;
    const again = isFollowed || failures.some((said) => said.again);
    return { error: this.#error(), again, isFollowed, isPaused: isFollowed || !isAlone };
  }

  #error(): RolloutError {
    const known = this.#rounds.all().flatMap((endpoint) => {
      const said = this.#said.get(endpoint) ?? endpoint.said;
      return said === undefined ? [] : [{ address: endpoint.address, error: said.error }];
    });
    const [first, ...others] = known;
    if (first !== undefined && others.length === 0) return first.error;
    const code = first?.error.code;
    if (first !== undefined && code !== "not_leader" && others.every(({ error }) => error.code === code)) {
      const address = known.map((one) => one.address).join(", ");
      return new RolloutError(first.error.code, { ...first.error.params, address }, first.error);
    }
    return failure("no_leader_found", { said: known.map(wordOf).join("; ") }, first?.error);
  }

  #retryAfterMs(): number {
    const hints = [...this.#said.values()].flatMap(({ error }) => leaderHintOf(error) ?? []);
    return hints.length === 0 ? 0 : Math.min(...hints.map(({ retryAfterMs }) => retryAfterMs));
  }
}

function wordOf({ address, error }: { readonly address: string; readonly error: RolloutError }): string {
  const { address: leader = "", epoch = "" } = error.params;
  if (error.code !== "not_leader") return error.message;
  return leaderHintOf(error)?.address === undefined
    ? `${address} follows and knows no leader`
    : `${address} follows ${leader} (epoch ${epoch})`;
}
