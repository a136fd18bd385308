// How much of what a server allows is used, in time that stands still: the real backend, and a server that is a few lines.
import { expect } from "chai";
import { seededRandom } from "../../../../../src/base/random.ts";
import type { Exchange, ExchangeOptions } from "../../../../../src/transport/exchange.ts";
import { VirtualClock } from "../../../../support/virtual-clock.ts";
import { chat, makeBackend, specOf } from "./asking.ts";

const RATE = 100;
const SLOTS = 32;
const SECONDS = 30;
const RETRY_AFTER_MS = 1_000;
/** A refusal is said sooner than an answer is made. */
const REFUSAL_MS = 5;

/** Whether one more is allowed now. */
type Allows = (nowMs: number) => boolean;

function bucketOf(tokensMax: number): Allows {
  let tokens = tokensMax;
  let atMs: number | undefined;
  return (nowMs) => {
    tokens = Math.min(tokensMax, tokens + ((nowMs - (atMs ?? nowMs)) * RATE) / 1_000);
    atMs = nowMs;
    if (tokens < 1 - Number.EPSILON * 100) return false;
    tokens--;
    return true;
  };
}

/** So many in each second of the clock. */
function windowed(): Allows {
  let [window, count] = [-1, 0];
  return (nowMs) => {
    const now = Math.floor(nowMs / 1_000);
    if (now !== window) [window, count] = [now, 0];
    return count++ < RATE;
  };
}

class ScriptedServer {
  answered = 0;
  refused = 0;
  /** Requests that came back before they were wanted. */
  early = 0;
  /** The lines of the worker's log about it. */
  told: readonly string[] = [];
  readonly #clock: VirtualClock;
  readonly #allows: Allows;
  readonly #latencyMs: () => number;
  readonly #wantedAtMs = new Map<string, number>();

  constructor(clock: VirtualClock, allows: Allows, latencyMs: () => number) {
    [this.#clock, this.#allows, this.#latencyMs] = [clock, allows, latencyMs];
  }

  exchange({ body = new Uint8Array(), signal }: ExchangeOptions): Promise<Exchange> {
    const name = Buffer.from(body).toString();
    const nowMs = this.#clock.monotonicMs();
    if (nowMs < (this.#wantedAtMs.get(name) ?? 0)) this.early++;
    const isAllowed = this.#allows(nowMs);
    const tookMs = isAllowed ? this.#latencyMs() : Math.min(REFUSAL_MS, this.#latencyMs());
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve({ kind: "aborted" }));
      this.#clock.after(tookMs, () => {
        if (isAllowed) this.answered++;
        else {
          this.refused++;
          this.#wantedAtMs.set(name, this.#clock.monotonicMs() + RETRY_AFTER_MS);
        }
        resolve(isAllowed ? answerOf(200) : answerOf(429, { "retry-after": "1" }));
      });
    });
  }
}

function answerOf(status: number, headers: Readonly<Record<string, string>> = {}): Exchange {
  const header = (name: string): string | undefined => headers[name];
  return { kind: "answer", status, statusText: "", header, body: Buffer.from("{}") };
}

async function serve(allows: Allows, latencyMs: () => number): Promise<ScriptedServer> {
  const clock = new VirtualClock();
  const server = new ScriptedServer(clock, allows, latencyMs);
  const { ask, backend, logger } = makeBackend(specOf('url = "http://h/v1"'), {
    ...{ slots: SLOTS, clock, random: seededRandom(1) },
    exchange: (options) => server.exchange(options),
  });
  const ending = new AbortController();
  let items = 0;
  const slots = Array.from({ length: SLOTS }, async () => {
    while (!ending.signal.aborted) await ask(chat(`${items++}`), ending.signal);
  });
  await clock.advance(SECONDS * 1_000);
  ending.abort();
  await clock.advance(0);
  await Promise.all(slots);
  await backend.close();
  server.told = logger.lines.map(({ message }) => message);
  expect(clock.armed, "nothing waits").to.be.below(SLOTS + 1);
  return server;
}

describe("a server that allows a rate and says 429 beyond it", () => {
  for (const [what, allowing] of [
    ["in each second of the clock", windowed],
    ["in bursts of a second's worth", () => bucketOf(RATE)],
    ["in bursts of a tenth of that", () => bucketOf(RATE / 10)],
  ] as const)
    for (const latencyMs of [1, 20, 100, 290])
      it(`is used at four fifths of it or more by 32 slots, if it allows its rate ${what} and takes ${latencyMs} ms`, async () => {
        const { answered, early } = await serve(allowing(), () => latencyMs);
        expect(answered / SECONDS).to.be.within(0.8 * RATE, RATE + RATE / SECONDS);
        expect(early, "Retry-After holds for each request").to.equal(0);
      });

  it("is used as much when it allows none before it is due, and answers now sooner, now later", async () => {
    const random = seededRandom(2);
    for (const [tokens, latencyMs] of [
      [1, () => 20],
      [RATE / 10, () => 100 + 200 * random.unit()],
    ] as const) {
      const { answered, refused, told } = await serve(bucketOf(tokens), latencyMs);
      expect(answered / SECONDS).to.be.above(0.8 * RATE);
      expect(refused / SECONDS).to.be.below(RATE / 10);
      expect(told, "it is no news each time").to.deep.equal([
        "the server does not answer as it should; trying again",
      ]);
    }
  });
});
