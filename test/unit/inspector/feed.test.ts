import { expect } from "chai";
import { Feed } from "../../../src/inspector/feed.ts";
import type { Outlet } from "../../../src/inspector/feed.ts";
import { ScriptedNews } from "../../support/page-rig.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

class Page implements Outlet {
  waitingBytes = 0;
  isCut = false;
  text = "";

  write(bytes: Uint8Array): void {
    this.text += Buffer.from(bytes).toString();
  }

  cut(): void {
    this.isCut = true;
  }
}

describe("the feed of the pages", () => {
  const open = (): { clock: VirtualClock; news: ScriptedNews; feed: Feed } => {
    const [clock, news] = [new VirtualClock(), new ScriptedNews()];
    const hello = { version: "0", run: null, listens_at: null, now_ms: 0, charts: [] };
    const feed = new Feed({ sources: [news], hello: () => ({ kind: "hello", ...hello }), clock });
    return { clock, news, feed };
  };

  it("follows its sources once, from the first page until some seconds after the last", async () => {
    const { clock, news, feed } = open();
    const pages = [new Page(), new Page()];
    expect(news.told).to.equal(undefined);
    for (const page of pages) feed.join(page);
    const told = news.told;
    expect(told).to.not.equal(undefined);
    for (const page of pages) feed.leave(page);
    await clock.advance(4_000);
    expect(news.told).to.equal(told);
    // It was loaded anew.
    const again = new Page();
    feed.join(again);
    await clock.advance(60_000);
    expect(news.told).to.equal(told);
    feed.leave(again);
    await clock.advance(5_000);
    expect(news.told).to.equal(undefined);
    expect(clock.armed).to.equal(0);
  });

  it("says with an empty line that the connection lives", async () => {
    const { clock, feed } = open();
    const page = new Page();
    feed.join(page);
    const before = page.text;
    await clock.advance(10_000);
    expect(page.text).to.equal(`${before}\n\n`);
  });

  it("has a bound for what waits for a page, and for pages", () => {
    const { news, feed } = open();
    const [slow, quick] = [new Page(), new Page()];
    for (const page of [slow, quick]) feed.join(page);
    slow.waitingBytes = 1_000_000;
    news.told?.({ kind: "program_gone", program_id: "a" });
    expect([slow.isCut, feed.readers]).to.deep.equal([false, 2]);
    slow.waitingBytes = 2_000_000;
    news.told?.({ kind: "program_gone", program_id: "b" });
    expect([slow.isCut, quick.isCut, feed.readers]).to.deep.equal([true, false, 1]);
    expect(quick.text).to.include('"b"');
    for (let more = 0; more < 1_023; more++) expect(feed.join(new Page())).to.equal(true);
    expect(feed.join(new Page())).to.equal(false);
  });
});
