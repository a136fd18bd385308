// `rollout inspect --listen` with the example's program, and a cluster of ours, as programs: real processes, and the feed of the page.
import { mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import { expect } from "chai";
import type { ActorRow, ChartPicture, LogEntry, PageNews } from "../../src/inspector/page-messages.ts";
import { withCluster } from "../support/cluster.ts";
import { eventually } from "../support/eventually.ts";

async function readFeed(url: URL, news: PageNews[], signal: AbortSignal): Promise<void> {
  const response = await fetch(new URL("/feed", url), { headers: headersOf(url), signal });
  const lines = createInterface({ input: Readable.fromWeb(response.body as ReadableStream) });
  for await (const line of lines) if (line !== "") news.push(JSON.parse(line) as PageNews);
}

function headersOf(url: URL): Record<string, string> {
  return { authorization: `Bearer ${url.searchParams.get("token") ?? ""}` };
}

describe("the inspector as programs' own", () => {
  it("shows the machines of a program that uses @statelyai/inspect, and ours, with no run of its own", async () => {
    const leaving = new AbortController();
    await withCluster({}, async (cluster) => {
      await mkdir(cluster.file("elsewhere"));
      const inspect = cluster.launch(["inspect", "--listen", "--json"], { directory: "elsewhere" });
      const said = JSON.parse(await inspect.until("its addresses", () => inspect.stdout[0])) as {
        readonly url: string;
        readonly run_id: null;
        readonly listens_at: string;
      };
      expect(said.run_id).to.equal(null);
      const url = new URL(said.url);
      const news: PageNews[] = [];
      const following = readFeed(url, news, leaving.signal).catch(() => undefined);
      const idOf = (name: string): string | undefined =>
        news.flatMap((one) => (one.kind === "program" ? one.program : [])).find((one) => one.name === name)
          ?.program_id;
      const rowsOf = (name: string): ActorRow[] => [
        ...new Map(
          news
            .flatMap((one) => (one.kind === "actors" && one.program_id === idOf(name) ? one.changed : []))
            .map((row) => [row.session_id, row]),
        ).values(),
      ];

      const shop = cluster.launch([`${said.listens_at}&name=shop`, "3"], {
        program: resolve("examples/inspect-a-program/shop.ts"),
      });
      expect((await shop.ended).code).to.equal(0);
      const rows = await eventually("its end", () => {
        const found = rowsOf("shop");
        return found.some(({ name, value }) => name === "shop" && value === "Closed") && found;
      });
      const root = rows.find(({ name }) => name === "shop");
      const orders = rows.filter(({ name }) => /^order-\d$/.test(name));
      expect(orders.map(({ name, parent_id }) => [name, parent_id])).to.deep.equal(
        [1, 2, 3].map((number) => [`order-${number}`, root?.session_id]),
      );
      expect(orders.map(({ value }) => value)).to.include.members(["Cancelled"]);
      const charge = rows.find(({ parent_id }) => parent_id === orders[0]?.session_id);
      expect(charge).to.deep.include({ definition: null, status: "done" });
      const entries = news.flatMap((one): readonly LogEntry[] => (one.kind === "log" ? one.entries : []));
      const first = entries.filter(({ session_id }) => session_id === orders[0]?.session_id);
      const values = first.filter(({ kind }) => kind === "snapshot").map(({ value }) => value);
      expect(values.slice(0, 3)).to.deep.equal([
        "Paying",
        "Packing.label.Blank+Packing.parcel.Open",
        "Packing.label.Printed+Packing.parcel.Open",
      ]);
      expect(
        first.some(({ kind, detail }) => kind === "event" && detail.includes('"receipt":"R-1"')),
      ).to.equal(true);
      const path = `/definitions/${idOf("shop") ?? ""}/${orders[0]?.definition ?? ""}`;
      const answered = await fetch(new URL(path, url), { headers: headersOf(url) });
      const picture = (await answered.json()) as ChartPicture;
      expect(picture.name).to.equal("order");
      expect(picture.svg).to.include('data-path="Packing.label.Printed"');

      await cluster.configure({ "inspect.stately": said.listens_at });
      await cluster.startCoordinator();
      await eventually("our coordinator", () => {
        const [ours] = rowsOf("coordinator");
        return ours?.value === "Leader" && ours.definition !== null;
      });
      await eventually("the run's own chart", () => rowsOf("coordinator").some(({ name }) => name === "run"));

      leaving.abort();
      await following;
      expect((await inspect.stop()).code).to.be.oneOf([0, 4]);
    });
  });
});
