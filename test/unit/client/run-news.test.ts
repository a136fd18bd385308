import { create } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { expect } from "chai";
import { RunNews } from "../../../src/client/run-news.ts";
import type { GetRunRequest } from "../../../src/gen/rollout/v1/run_pb.ts";
import { GetRunRequestSchema, GetRunResponseSchema } from "../../../src/gen/rollout/v1/run_pb.ts";
import { failureOf } from "../../support/rejection.ts";
import { settle } from "../../support/settle.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const COLLECT_MS = 400;

describe("who follows a run in numbers", () => {
  let clock: VirtualClock;
  let asked: GetRunRequest[];
  let mark: string;
  let news: RunNews;

  beforeEach(() => {
    [clock, asked, mark] = [new VirtualClock(), [], "n0.1.1"];
    const getRun = async (request: MessageInitShape<typeof GetRunRequestSchema>) => {
      asked.push(create(GetRunRequestSchema, request));
      return create(GetRunResponseSchema, { run: { done: asked.length }, after: mark });
    };
    news = new RunNews(
      { getRun },
      {
        clock,
        collectMs: COLLECT_MS,
      },
    );
  });

  it("asks at once the first time, and then after the last answer, and the coordinator holds that call back until there is news", async () => {
    expect((await news.next()).status.done).to.equal(1);
    mark = "n0.1.2";
    expect((await news.next()).status.done).to.equal(2);
    await news.next();
    expect(asked.map(({ after }) => after)).to.deep.equal(["", "n0.1.1", "n0.1.2"]);
    expect(asked.map(({ waitMs, collectMs }) => [waitMs > collectMs, collectMs])).to.deep.equal(
      Array(3).fill([true, COLLECT_MS]),
    );
    expect(clock.armed).to.equal(0);
  });

  for (const [who, marks] of [
    ["of 0.1, which has no calls wait,", [""]],
    ["that has too many calls wait", ["n0.1.1", "n0.1.1"]],
  ] as const)
    it(`asks a coordinator ${who} after a pause`, async () => {
      for (mark of marks) await news.next();
      const next = news.next();
      await settle();
      expect(asked).to.have.length(marks.length);
      await clock.advance(500);
      await next;
      expect(asked).to.have.length(marks.length + 1);
    });

  it("stops when it is interrupted", async () => {
    mark = "";
    await news.next();
    const stop = new AbortController();
    const next = failureOf(news.next(stop.signal));
    await settle();
    stop.abort();
    expect((await next).code).to.equal("interrupted");
    expect([asked.length, clock.armed]).to.deep.equal([1, 0]);
  });
});
