import { create } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { expect } from "chai";
import { failure } from "../../../src/base/errors.ts";
import { KeyNews } from "../../../src/client/key-news.ts";
import type { GetKeyRequest } from "../../../src/gen/rollout/v1/keys_pb.ts";
import { GetKeyRequestSchema, GetKeyResponseSchema } from "../../../src/gen/rollout/v1/keys_pb.ts";
import { failureOf } from "../../support/rejection.ts";
import { settle } from "../../support/settle.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

describe("who follows a key", () => {
  let clock: VirtualClock;
  let asked: GetKeyRequest[];
  let answer: { after: string; end?: boolean } | undefined;
  let news: KeyNews;

  beforeEach(() => {
    [clock, asked, answer] = [new VirtualClock(), [], { after: "1.going" }];
    const getKey = async (request: MessageInitShape<typeof GetKeyRequestSchema>) => {
      asked.push(create(GetKeyRequestSchema, request));
      if (answer === undefined) throw failure("key_unknown", { key: "order/1" });
      return create(GetKeyResponseSchema, { key: { key: "order/1", items: asked.length }, ...answer });
    };
    news = new KeyNews({ getKey }, "order/1", clock);
  });

  it("asks at once the first time, and then after the last answer, and the coordinator holds that call back until there is news", async () => {
    expect((await news.next()).key?.items).to.equal(1);
    answer = { after: "2.failed", end: true };
    expect((await news.next()).isOver).to.equal(true);
    await news.next();
    expect(asked.map(({ after }) => after)).to.deep.equal(["", "1.going", "2.failed"]);
    expect(asked.every(({ waitMs, withState }) => waitMs > 0 && withState)).to.equal(true);
  });

  it("waits for a key that does not exist", async () => {
    answer = undefined;
    expect(await news.next()).to.deep.equal({ key: undefined, isOver: false });
    answer = { after: "0.going" };
    expect((await news.next()).key?.key).to.equal("order/1");
    expect(asked.map(({ after }) => after)).to.deep.equal(["", "0"]);
  });

  it("asks after a pause where the coordinator holds no calls back, and stops when it is interrupted", async () => {
    answer = { after: "" };
    await news.next();
    const next = news.next();
    await settle();
    expect(asked).to.have.length(1);
    await clock.advance(500);
    await next;
    expect(asked).to.have.length(2);
    const stop = new AbortController();
    const last = failureOf(news.next(stop.signal));
    await settle();
    stop.abort();
    expect((await last).code).to.equal("interrupted");
    expect([asked.length, clock.armed]).to.deep.equal([2, 0]);
  });
});
