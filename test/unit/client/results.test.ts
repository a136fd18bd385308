import type { MessageInitShape } from "@bufbuild/protobuf";
import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { failure } from "../../../src/base/errors.ts";
import type { RolloutError } from "../../../src/base/errors.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { readResults } from "../../../src/client/results.ts";
import type { ReadOptions, ResultPage } from "../../../src/client/results.ts";
import type { ListResultsRequest, ListResultsResponseSchema } from "../../../src/gen/rollout/v1/run_pb.ts";
import { ResultOrder } from "../../../src/gen/rollout/v1/run_pb.ts";
import { OutcomeClass } from "../../../src/gen/rollout/v1/work_pb.ts";
import { useClosers } from "../../support/closers.ts";
import { eventually } from "../../support/eventually.ts";
import { startFakeOperatorService } from "./fake-operator-service.ts";
import type { FakeOperatorService } from "./fake-operator-service.ts";
import { failureOf } from "../../support/rejection.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

type Answer = MessageInitShape<typeof ListResultsResponseSchema>;

const OPTIONS: ReadOptions = {
  order: "completion",
  follow: false,
  limit: 2,
  clock: systemClock,
  random: seededRandom(1),
};

describe("reading results", () => {
  const closeLater = useClosers();
  /** Results that are there, and whether more will come. */
  let there: number;
  let isOver: boolean;
  let asked: ListResultsRequest[];
  let service: FakeOperatorService;

  beforeEach(async () => {
    [there, isOver, asked] = [0, false, []];
    service = await startFakeOperatorService({
      listResults: (request) => {
        asked.push(request);
        return pageAfter(request);
      },
    });
    closeLater(() => service.close());
  });

  function pageAfter({ after, limit }: ListResultsRequest): Answer {
    const from = after === "" ? 0 : Number(after);
    const to = Math.min(there, from + limit);
    const caughtUp = to === there;
    const numbers = Array.from({ length: to - from }, (_, at) => from + at);
    return {
      results: numbers.map((number) => ({
        itemId: Buffer.alloc(32, number),
        label: `line-${number}`,
        sequence: BigInt(number),
        outcome: OutcomeClass.SUCCESS,
        attempt: 1,
      })),
      after: String(to),
      caughtUp,
      end: caughtUp && isOver,
    };
  }

  async function read(options: Partial<ReadOptions> = {}): Promise<(string | undefined)[]> {
    const ids: (string | undefined)[] = [];
    for await (const { results } of readResults(service.transport, { ...OPTIONS, ...options }))
      ids.push(...results.map(({ id }) => id));
    return ids;
  }

  const lines = (from: number, to: number): string[] =>
    Array.from({ length: to - from }, (_, at) => `line-${from + at}`);

  it("gives all that are there, a page at a time, each once", async () => {
    there = 5;
    expect(await read()).to.deep.equal(lines(0, 5));
    expect(asked.map(({ after }) => after)).to.deep.equal(["", "2", "4"]);
  });

  it("reads one page ahead of who uses them, and no further", async () => {
    there = 9;
    const pages = readResults(service.transport, OPTIONS);
    await pages.next();
    await eventually("the second page", () => asked.length === 2);
    await pages.next();
    await eventually("the third page", () => asked.length === 3);
    expect(asked.map(({ after }) => after)).to.deep.equal(["", "2", "4"]);
    await pages.return(undefined);
  });

  it("asks for the order, the size and the inputs that it was asked for", async () => {
    await read({ order: "input", withInput: true, limit: 7 });
    expect(asked[0]).to.include({ order: ResultOrder.INPUT, withPayload: true, limit: 7, waitMs: 0 });
  });

  it("goes on after a cursor", async () => {
    there = 5;
    expect(await read({ after: "3" })).to.deep.equal(lines(3, 5));
  });

  it("gives failures from inside behind the results in order of the input, and goes on with both", async () => {
    const origin = { from: { case: "mail", value: { key: "order/1" } } } as const;
    const inside = [
      { label: "f0", outcome: OutcomeClass.ERROR, failureClass: "error", origin },
      { label: "stopped", outcome: OutcomeClass.CANCELLED, failureClass: "cancelled", origin },
      { label: "f1", outcome: OutcomeClass.ERROR, failureClass: "error", origin },
    ];
    const mixed = await startFakeOperatorService({
      listResults: (request) => {
        asked.push(request);
        if (!request.onlyFailedInside) return pageAfter(request);
        const from = Number(request.after.slice(1));
        const results = inside.slice(from, from + request.limit);
        const to = from + results.length;
        return {
          results,
          after: `c${to}`,
          caughtUp: to === inside.length,
          end: isOver && to === inside.length,
        };
      },
    });
    closeLater(() => mixed.close());
    there = 3;
    const options = { ...OPTIONS, order: "input", inside: "failed" } as const;
    const pages: ResultPage[] = [];
    for await (const page of readResults(mixed.transport, options)) pages.push(page);
    const idsOf = ({ results }: ResultPage): (string | undefined)[] => results.map(({ id }) => id);
    expect(pages.map(idsOf)).to.deep.equal([["line-0", "line-1"], ["line-2"], ["f0"], ["f1"]]);
    expect(pages.map(({ cursor }) => cursor)).to.deep.equal(["2", "3", "3+c2", "3+c3"]);
    expect(pages.map(({ caughtUp }) => caughtUp)).to.deep.equal([false, false, false, true]);
    [there, isOver] = [4, true];
    const more: ResultPage[] = [];
    for await (const page of readResults(mixed.transport, { ...options, after: "3+c2", follow: true }))
      more.push(page);
    expect(more.map(idsOf)).to.deep.equal([["line-3"], ["f1"]]);
    expect(more.at(-1)).to.include({ cursor: "4+c3", end: true });
  });

  it("ends with a page that says that it is the last, even without results", async () => {
    isOver = true;
    const pages: ResultPage[] = [];
    for await (const page of readResults(service.transport, { ...OPTIONS, follow: true })) pages.push(page);
    expect(pages).to.deep.equal([{ results: [], cursor: "0", caughtUp: true, end: true }]);
  });

  it("asks the coordinator to hold the call back when it follows, and asks again at once after an answer", async () => {
    const held: (() => void)[] = [];
    const waiting = await startFakeOperatorService({
      listResults: async (request) => {
        asked.push(request);
        if (Number(request.after) === there) await new Promise<void>((resolve) => held.push(resolve));
        return pageAfter(request);
      },
    });
    closeLater(() => waiting.close());
    there = 1;
    const clock = new VirtualClock();
    const pages = readResults(waiting.transport, { ...OPTIONS, follow: true, clock });
    await pages.next();
    const second = pages.next();
    await eventually("it waits", () => held.length === 1);
    expect(asked.map(({ waitMs }) => waitMs > 0)).to.deep.equal([true, true]);
    there = 2;
    isOver = true;
    held.forEach((answer) => answer());
    // Without a timer of its own: its clock stands still.
    expect((await second).value).to.deep.include({ cursor: "2", end: true });
    expect(clock.armed).to.equal(0);
  });

  it("collects what comes for a while after a page with several, the longer the more there were", async () => {
    const clock = new VirtualClock();
    const pages = readResults(service.transport, { ...OPTIONS, limit: 100, follow: true, clock });
    const pauses: number[] = [];
    for (const several of [2, 5, 90]) {
      there += several;
      await pages.next();
      const before = asked.length;
      const next = pages.next();
      await eventually("it pauses", () => clock.armed === 1);
      expect(asked.length).to.equal(before);
      const pausedMs = clock.monotonicMs();
      while (clock.armed > 0) await clock.advance(1);
      pauses.push(clock.monotonicMs() - pausedMs);
      there += 1;
      await next;
    }
    expect(pauses).to.deep.equal([6, 24, 50]);
    await pages.return(undefined);
  });

  it("follows until the run is over, and asks less often a coordinator that does not wait", async () => {
    there = 1;
    const reading = read({ follow: true });
    await eventually("it has looked twice for more", () => asked.length >= 3);
    there = 5;
    isOver = true;
    expect(await reading).to.deep.equal(lines(0, 5));
  });

  it("stops following when it is interrupted", async () => {
    const stop = new AbortController();
    const reading = failureOf(read({ follow: true, signal: stop.signal }));
    await eventually("it waits", () => asked.length > 0);
    stop.abort();
    expect((await reading).code).to.equal("interrupted");
  });

  it("waits for a coordinator that restarts and goes on where it was: nothing twice, nothing missing", async () => {
    there = 3;
    const told: (string | undefined)[] = [];
    const reading = read({ follow: true, onTrouble: (error) => told.push(error?.code) });
    await eventually("it has all three", () => asked.some(({ after }) => after === "3"));
    await service.goAway();
    await eventually("it has noticed", () => told.length > 0);
    there = 5;
    isOver = true;
    await service.comeBack();
    expect(await reading).to.deep.equal(lines(0, 5));
    expect(told).to.have.length(2);
    expect(told[0]).to.be.oneOf(["coordinator_refused_connection", "coordinator_silent"]);
    expect(told[1]).to.equal(undefined);
  });

  it("waits no longer than its patience", async () => {
    await service.goAway();
    const error = await failureOf(read({ patienceMs: 1 }));
    expect(error.code).to.equal("coordinator_refused_connection");
  });

  it("rejects at once with an error that waiting does not end", async () => {
    const refusal = failure("request_invalid", { method: "ListResults", reason: "no" });
    const refusing = await startFakeOperatorService({
      listResults: () => {
        throw refusal;
      },
    });
    closeLater(() => refusing.close());
    const troubles: (RolloutError | undefined)[] = [];
    const reading = readResults(refusing.transport, {
      ...OPTIONS,
      onTrouble: (error) => troubles.push(error),
    });
    expect((await failureOf(reading.next())).code).to.equal("request_invalid");
    expect(troubles).to.deep.equal([]);
  });
});
