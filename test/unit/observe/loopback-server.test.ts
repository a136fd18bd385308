import { once } from "node:events";
import { request } from "node:http";
import type { RequestOptions } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { parseAddress } from "../../../src/base/address.ts";
import { systemClock } from "../../../src/base/clock.ts";
import type { Clock } from "../../../src/base/clock.ts";
import type { Page } from "../../../src/observe/loopback-server.ts";
import { startLoopbackServer, words } from "../../../src/observe/loopback-server.ts";
import { useClosers } from "../../support/closers.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { eventually } from "../../support/eventually.ts";
import { failureOf } from "../../support/rejection.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

describe("a server for programs of this machine", () => {
  const closeLater = useClosers();

  async function start(listenAddr = "127.0.0.1:0", clock: Clock = systemClock) {
    const log = new RecordingLogger();
    const pages = {
      "/page": () => Promise.resolve(words(200, "here")),
      "/slow": () => new Promise<Page>(() => undefined),
      "/broken": () => Promise.reject(new Error("a secret reason")),
    };
    const server = await startLoopbackServer({ listenAddr, setting: "x.addr", pages, log, clock });
    closeLater(() => server.close());
    const { host = "", port = 0 } = parseAddress(server.address) ?? {};
    const ask = async (path: string, options: RequestOptions = {}) => {
      const sent = request({ host, port, path, ...options });
      sent.end();
      const [response] = (await once(sent, "response")) as [Parameters<typeof text>[0] & Reply];
      return { status: response.statusCode, headers: response.headers, body: await text(response) };
    };
    return { server, log, ask, port };
  }

  interface Reply {
    readonly statusCode: number;
    readonly headers: Readonly<Record<string, string>>;
  }

  it("says that a page takes too long where it does not come", async () => {
    const clock = new VirtualClock();
    const { ask } = await start("127.0.0.1:0", clock);
    const asked = ask("/slow");
    await eventually("it is waited for", () => clock.armed > 0);
    await clock.advance(2_000);
    expect(await asked).to.deep.include({ status: 503, body: "it takes too long to say\n" });
  });

  it("answers GET and HEAD, with whatever query, and nothing else", async () => {
    const { ask } = await start();
    const page = await ask("/page?x=1");
    expect([page.status, page.body]).to.deep.equal([200, "here\n"]);
    expect(page.headers).to.include({ "cache-control": "no-store", connection: "close" });
    const head = await ask("/page", { method: "HEAD" });
    expect([head.status, head.headers["content-length"], head.body]).to.deep.equal([200, "5", ""]);
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
      const { status, headers } = await ask("/page", { method });
      expect([status, headers["allow"]]).to.deep.equal([405, "GET, HEAD"]);
    }
    const other = await ask("/constructor");
    expect([other.status, other.body]).to.deep.equal([404, "there are /page, /slow, /broken\n"]);
  });

  it("refuses every name but one of this machine: a page of another site does not read it", async () => {
    const { ask, port } = await start();
    for (const host of [`localhost:${port}`, "127.0.0.1", `[::1]:${port}`, "127.8.8.8:1"])
      expect((await ask("/page", { headers: { host } })).status, host).to.equal(200);
    for (const host of ["rebound.example", `rebound.example:${port}`, "127.0.0.1.example", "10.0.0.1", "a b"])
      expect((await ask("/page", { headers: { host } })).status, host).to.equal(421);
  });

  it("keeps the reason of what it cannot make in its log", async () => {
    const { ask, log } = await start();
    const { status, body } = await ask("/broken");
    expect(status).to.equal(500);
    expect(body).to.not.include("secret");
    expect(log.lines.map(({ message }) => message)).to.deep.equal(["a page could not be made"]);
  });

  it("closes the connection of who sends too much, and of one of too many", async () => {
    const { ask, port } = await start();
    expect((await ask("/page", { headers: { "x-long": "x".repeat(9_000) } })).status).to.equal(431);
    const sockets = Array.from({ length: 64 }, () => connect(port, "127.0.0.1"));
    closeLater(() => sockets.forEach((socket) => socket.destroy()));
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    const late = connect(port, "127.0.0.1");
    late.on("error", () => undefined);
    await once(late, "close");
    sockets[0]?.destroy();
  });

  it("names the setting when it cannot listen", async () => {
    const { server } = await start();
    const error = await failureOf(start(server.address));
    expect(error.params).to.deep.equal({
      address: server.address,
      reason: "the address is in use",
      setting: "x.addr",
    });
  });
});
