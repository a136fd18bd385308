// The server of the page over real HTTP: who is let in, and what a caller can cost.
import { connect } from "node:net";
import { once } from "node:events";
import { expect } from "chai";
import { failure } from "../../../src/base/errors.ts";
import type { Deed } from "../../../src/inspector/page-messages.ts";
import type { Operator } from "../../../src/inspector/page-server.ts";
import { useClosers } from "../../support/closers.ts";
import { eventually } from "../../support/eventually.ts";
import { ScriptedNews, startPageRig, TOKEN, withToken } from "../../support/page-rig.ts";
import type { PageRig, Reply } from "../../support/page-rig.ts";

const MIB = 1024 * 1024;

describe("the server of the page", () => {
  const closeLater = useClosers();
  let rig: PageRig;
  let news: ScriptedNews;
  let performed: Deed[];

  const operator: Operator = {
    explainItem: (name) => {
      if (name === "a/b c") return Promise.resolve({ object: { item: name }, lines: ["here"] });
      if (name === "away") return Promise.reject(failure("coordinator_silent", { address: "x:1" }));
      return Promise.reject(failure("name_unknown", { name }));
    },
    explainWorker: () => Promise.resolve(undefined),
    perform: (deed) => {
      performed.push(deed);
      if (deed.deed === "cancel") return Promise.reject(failure("run_cancelled", {}));
      return Promise.resolve("done");
    },
  };

  beforeEach(async () => {
    [news, performed] = [new ScriptedNews(), []];
    rig = await startPageRig(news, { operator });
    closeLater(() => rig.close());
  });

  const post = (body: string | readonly string[], headers: Record<string, string> = {}): Promise<Reply> =>
    rig.ask("/do", {
      ...{ method: "POST", body },
      headers: { ...withToken, "content-type": "application/json", ...headers },
    });

  it("gives the page to whoever has the token, and nothing but its own may run or be loaded in it", async () => {
    const { status, headers, body } = await rig.ask(`/?token=${TOKEN}`);
    expect([status, body]).to.deep.equal([200, "the file index.html"]);
    const policy = String(headers["content-security-policy"]).split("; ");
    expect(policy).to.have.members([
      ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"],
      ...["img-src 'self' data:", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
      ...["require-trusted-types-for 'script'", "trusted-types chart"],
    ]);
    expect(headers).to.include({
      ...{ "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" },
      ...{ "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin" },
      ...{ "cache-control": "no-store", connection: "close", "content-type": "text/html; charset=utf-8" },
    });
    expect(headers).to.not.have.property("access-control-allow-origin");
    const types = await Promise.all(["/page.js", "/page.css"].map((path) => rig.ask(path)));
    expect(types.map((reply) => [reply.status, reply.headers["content-type"]])).to.deep.equal([
      [200, "text/javascript; charset=utf-8"],
      [200, "text/css; charset=utf-8"],
    ]);
  });

  it("tells nothing to callers without the token", async () => {
    for (const path of ["/", "/?token=", `/?token=${TOKEN}x`, `/?token=${TOKEN.slice(1)}`]) {
      const { status, body } = await rig.ask(path);
      expect([status, body], path).to.deep.equal([
        403,
        "this page is for whoever started it: open the address that `rollout inspect` has printed; each start has another one.\n",
      ]);
    }
    const wrong = ["", `Bearer ${TOKEN}x`, "Bearer ", `Basic ${TOKEN}`, `Bearer ${TOKEN.replace("a", "b")}`];
    for (const authorization of wrong)
      for (const path of [
        "/feed",
        "/charts/run",
        "/item/x",
        "/worker/x",
        "/definitions/p/h",
        "/do",
        "/none",
      ]) {
        const method = path === "/do" ? "POST" : "GET";
        const asked = await rig.ask(`${path}?token=${TOKEN}`, { method, headers: { authorization } });
        expect(asked.status, `${path} with ${authorization}`).to.equal(401);
      }
    expect(rig.feed.readers).to.equal(0);
  });

  it("answers only by a name of this machine with its port, and no other site's page", async () => {
    const port = rig.address.split(":")[1] ?? "";
    const status = async (headers: Record<string, string>): Promise<number> =>
      (await rig.ask("/item/a%2Fb%20c", { headers: { ...withToken, ...headers } })).status;
    for (const host of [`localhost:${port}`, `[::1]:${port}`, `127.0.0.1:${port}`]) {
      expect(await status({ host }), host).to.equal(200);
      expect(await status({ host, origin: `http://${host}` }), host).to.equal(200);
    }
    for (const host of [`rebound.example:${port}`, "127.0.0.1", `localhost:${Number(port) + 1}`, "a b"])
      expect(await status({ host }), host).to.equal(421);
    for (const origin of ["http://evil.example", "null", `https://${rig.address}`, "http://127.0.0.1:1", ""])
      expect(await status({ origin }), origin).to.equal(403);
    expect((await rig.ask(`/?token=${TOKEN}`, { headers: { host: "rebound.example" } })).status).to.equal(
      421,
    );
  });

  it("answers each question by its own method, and says what is not there", async () => {
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"]) {
      const { status, headers } = await rig.ask("/feed", { method, headers: withToken });
      expect([status, headers["allow"]], method).to.deep.equal([405, "GET"]);
    }
    expect((await rig.ask("/do", { headers: withToken })).headers["allow"]).to.equal("POST");
    const asked = (path: string): Promise<Reply> => rig.ask(path, { headers: withToken });
    expect(JSON.parse((await asked("/item/a%2Fb%20c")).body)).to.deep.equal({
      ...{ object: { item: "a/b c" }, lines: ["here"] },
    });
    const unknown = await asked("/item/x");
    expect([unknown.status, JSON.parse(unknown.body)]).to.deep.include(404);
    expect(unknown.body).to.match(
      /^\{"ok":false,"error":\{"message":"the run has no item, worker or actor x"/,
    );
    expect((await asked("/item/away")).status).to.equal(503);
    for (const path of ["/worker/x", "/charts/none", "/item/%ff", "/item", "/etc/passwd", "/../package.json"])
      expect((await asked(path)).status, path).to.equal(404);
  });

  it("does what it is told in JSON of a few words, and nothing that it only half understands", async () => {
    const deeds: readonly Deed[] = [
      { deed: "pause" },
      { deed: "drain", worker_id: "W" },
      { deed: "retry" },
      { deed: "retry", item: "x" },
    ];
    for (const deed of deeds)
      expect(JSON.parse((await post(JSON.stringify(deed))).body)).to.deep.equal({ ok: true, words: "done" });
    expect(performed).to.deep.equal(deeds);
    const refusal = await post('{"deed":"cancel"}');
    expect(refusal.status).to.equal(200);
    expect(JSON.parse(refusal.body)).to.have.nested.property("error.hint").that.is.not.empty;
    performed = [];
    const half = ['{"deed":"retry","itme":"x"}', '{"deed":"drain"}', '{"deed":"erase"}', "[]", "{", ""];
    for (const body of [...half, '{"deed":"pause","item":"x"}', '{"deed":"retry","item":7}'])
      expect((await post(body)).status, body).to.equal(400);
    expect((await post("deed=pause", { "content-type": "text/plain" })).status).to.equal(415);
    expect((await post(`{"deed":"pause"}${" ".repeat(4_096)}`)).status).to.equal(413);
    const pieces = Array.from({ length: 64 }, () => " ".repeat(1_024));
    expect((await post([...pieces, '{"deed":"pause"}'])).status).to.equal(413);
    expect((await post('{"deed":"pause"}', { origin: "http://evil.example" })).status).to.equal(403);
    expect(performed).to.deep.equal([]);
  });

  it("cuts off a page that reads too slowly, which is whole when it comes again; others go on", async () => {
    news.known.push({ kind: "link", connected: true, since_ms: 1, reason: null });
    const port = Number(rig.address.split(":")[1]);
    const slow = connect(port, "127.0.0.1");
    closeLater(() => slow.destroy());
    slow.write(`GET /feed HTTP/1.1\r\nhost: ${rig.address}\r\nauthorization: Bearer ${TOKEN}\r\n\r\n`);
    const quick = await rig.follow();
    closeLater(() => quick.leave());
    await eventually("both read", () => rig.feed.readers === 2);
    const reason = "x".repeat(MIB / 2);
    let told = 0;
    const tell = (): void => news.told?.({ kind: "link", connected: false, since_ms: ++told, reason });
    await eventually("the slow one is cut off", () => {
      if (quick.of("link").length > told) tell();
      return rig.feed.readers === 1;
    });
    tell();
    await eventually("the quick one was told all", () => quick.of("link").length === told + 1);
    slow.resume();
    await once(slow, "close");
    const again = await rig.follow();
    closeLater(() => again.leave());
    await eventually("it is whole", () => again.news.length === 2);
    expect(again.news.map(({ kind }) => kind)).to.deep.equal(["hello", "link"]);
  });

  it("says nothing of an error of its own but that it is one", async () => {
    const broken = await startPageRig(news, { file: () => Promise.reject(new Error("a secret reason")) });
    closeLater(() => broken.close());
    const { status, body } = await broken.ask("/page.js");
    expect([status, body.includes("secret")]).to.deep.equal([500, false]);
    expect(broken.log.lines.map(({ level }) => level)).to.deep.equal(["error"]);
    const long = await rig.ask("/page.js", { headers: { "x-long": "x".repeat(9_000) } });
    expect(long.status).to.equal(431);
  });
});
