import { expect } from "chai";
import { createServer as createTlsServer } from "node:https";
import { createServer } from "node:net";
import type { Server, Socket } from "node:net";
import { OpenAiServer } from "../../../../../examples/openai-server/server.ts";
import type { OpenAiServerOptions } from "../../../../../examples/openai-server/server.ts";
import { TestAuthority } from "../../../../support/certificates.ts";
import { useClosers } from "../../../../support/closers.ts";
import { eventually } from "../../../../support/eventually.ts";
import { restartableAddress } from "../../../../support/listeners.ts";
import { VirtualClock } from "../../../../support/virtual-clock.ts";
import type { HttpBackendOptions } from "../../../../../src/worker/backends/http/http-backend.ts";
import { chat, makeBackend, passUntil, settleSockets, settleWith, specOf, textOf } from "./asking.ts";
import type { Asking } from "./asking.ts";

describe("the http backend", () => {
  const closing = useClosers();
  let clock: VirtualClock;
  let server: OpenAiServer;
  beforeEach(() => (clock = new VirtualClock()));

  async function start(options: OpenAiServerOptions = {}): Promise<void> {
    server = await OpenAiServer.start({ clock, ...options });
    closing(() => server.close());
  }

  function make(
    lines: readonly string[] = [],
    more: Partial<HttpBackendOptions> = {},
    url = server.url,
  ): Asking {
    const asking = makeBackend(specOf(`url = "${url}"`, ...lines), { clock, ...more });
    closing(() => asking.backend.close());
    return asking;
  }

  const behave = (behaviour: object): Record<string, unknown> => ({ behave: behaviour });
  const answerTo = (text: string, words: number): string =>
    `You asked in ${words} word${words === 1 ? "" : "s"}: ${text}`;

  it("keeps its connections, also after refusals", async () => {
    await start();
    const { ask } = make();
    for (let round = 0; round < 5; round++) await ask(chat("x"));
    await ask({ messages: "wrong" });
    await ask(chat("x"));
    expect([server.requests.length, server.connections]).to.deep.equal([7, 1]);
  });

  it("sends no more requests at once than it may", async () => {
    await start();
    const { ask } = make(["concurrency = 2"], { slots: 8 });
    const endings = Array.from({ length: 8 }, () => ask(chat("x", behave({ kind: "slow", delayMs: 100 }))));
    const all = Promise.all(endings);
    let isDone = false;
    void all.then(() => (isDone = true));
    await passUntil(clock, "all answers", () => isDone);
    expect([server.mostUnderWay, server.requests.length]).to.deep.equal([2, 8]);
  });

  it("answers for the item what the server says of it, at once", async () => {
    await start({ models: ["toy"] });
    const { ask } = make();
    expect(await ask(chat("x", { model: "other" }))).to.deep.include({
      kind: "error",
      message: "404 Not Found: the model other does not exist",
    });
    expect(server.requests).to.have.length(1);
    const detail = { kind: "status", status: 422, body: '{"detail":[{"loc":["body"],"msg":"missing"}]}' };
    expect(await ask(chat("x", behave(detail)))).to.deep.include({
      kind: "error",
      message: '422 Unprocessable Entity: {"detail":[{"loc":["body"],"msg":"missing"}]}',
    });
    const long = { kind: "status", status: 400, body: "x".repeat(200_000) };
    expect(await ask(chat("x", behave(long))))
      .to.have.property("message")
      .with.length.below(2_100);
  });

  it("follows no redirect", async () => {
    await start();
    const moved = { kind: "status", status: 307, headers: { location: "http://elsewhere/" }, body: "" };
    expect(await make().ask(chat("x", behave(moved)))).to.deep.include({
      kind: "error",
      message: "307 Temporary Redirect: to http://elsewhere/, which is not followed",
    });
  });

  it("asks no other server, whatever an item says", async () => {
    await start();
    const { ask } = make(['path = "/{.a}/{.b}"'], {}, server.origin);
    expect((await ask({ a: "", b: "other:80/x" })).kind).to.equal("error");
    expect(server.requests.map(({ path }) => path)).to.deep.equal(["//other%3A80%2Fx"]);
  });

  it("sends nothing for an item that lacks a field of the template", async () => {
    await start();
    expect(await make(['body = { prompt = "{.text}" }']).ask({})).to.deep.equal({
      kind: "error",
      message: "the item cannot be sent: it has no field text, which the request needs",
      isPermanent: true,
    });
    expect(server.requests).to.have.length(0);
  });

  describe("with a key out of the environment", () => {
    const KEY = "sk-very-secret-1";
    const lines = ['headers = { Authorization = "Bearer ${API_KEY}" }'];

    it("sends it, and shows it nowhere", async () => {
      await start({ apiKey: KEY });
      const right = make(lines, { env: { API_KEY: KEY } });
      expect((await right.ask(chat("x"))).kind).to.equal("success");
      const wrong = make(lines, { env: { API_KEY: "sk-very-wrong-2" } });
      expect(await wrong.ask(chat("x"))).to.deep.include({
        kind: "error",
        message: "401 Unauthorized: incorrect API key provided: Bearer [redacted]",
      });
      const batch = { custom_id: "1", method: "POST", url: "/v1/chat/completions", body: chat("x") };
      const outcome = await wrong.ask(batch);
      const response = outcome.kind === "error" ? Buffer.from(outcome.response ?? []).toString() : "";
      expect(response).to.include('"status_code":401');
      expect(JSON.stringify([outcome, response, wrong.logs, wrong.logger.lines]))
        .to.include("[redacted]")
        .and.not.include("sk-");
    });

    it("is broken when it is not there, and charges no item", async () => {
      await start();
      const { ask, broken } = make(lines);
      expect([await ask(chat("x")), server.requests.length]).to.deep.equal([{ kind: "preempted" }, 0]);
      await clock.advance();
      expect(broken).to.deep.equal([
        "the header Authorization needs the environment variable API_KEY, which is not set",
      ]);
    });
  });

  describe("when it is throttled", () => {
    beforeEach(() => start());

    it("asks whether the item may begin before it sends it again, for the server has done nothing for it", async () => {
      const { ask, logs } = make();
      let mayBegin = true;
      server.misbehave({ kind: "throttle", retryAfter: "7" });
      const outcome = ask(chat("a"), undefined, { mayBegin: () => mayBegin });
      await passUntil(clock, "the refusal", () => logs.length > 0, 0);
      mayBegin = false;
      expect(await settleWith(clock, outcome)).to.deep.equal({ kind: "preempted" });
      expect(server.requests).to.have.length(1);
    });

    for (const [what, retryAfter] of [
      ["seconds", "7"],
      ["a date", "Thu, 01 Jan 2026 00:00:07 GMT"],
    ] as const)
      it(`waits with the request that it refused for as long as it asks for (${what}), and with no other`, async () => {
        const { ask, logs, reports } = make();
        server.misbehave({ kind: "throttle", retryAfter });
        const first = ask(chat("a"));
        await passUntil(clock, "the refusal", () => logs.length > 0, 0);
        expect(reports).to.deep.equal(["waiting"]);
        expect((await settleWith(clock, ask(chat("b")), 1)).kind).to.equal("success");
        await clock.advance(6_500);
        await settleSockets();
        expect(server.requests, "the other's and its own").to.have.length(2);
        expect((await settleWith(clock, first)).kind).to.equal("success");
        expect([server.requests.length, logs]).to.deep.equal([3, ["try 1 of 5: 429 Too Many Requests\n"]]);
        expect(reports.at(-1)).to.equal("executing");
      });

    it("takes a 503 that says when to come back for the same", async () => {
      const { ask, logger } = make();
      server.misbehave({ kind: "status", status: 503, headers: { "retry-after": "7" } });
      const from = clock.monotonicMs();
      expect((await settleWith(clock, ask(chat("a")))).kind).to.equal("success");
      expect(clock.monotonicMs() - from).to.be.within(7_000, 8_000);
      expect(logger.lines[0]?.fields["trouble"]).to.equal("throttled");
    });

    it("waits longer each time when the server does not say how long", async () => {
      const { ask } = make([], { random: { unit: () => 0.999, bytes: () => new Uint8Array() } });
      server.misbehave({ kind: "throttle" }, 3);
      const at: number[] = [];
      const ending = ask(chat("a"));
      for (let count = 1; count <= 4; count++)
        at.push(
          await passUntil(
            clock,
            `request ${count}`,
            () => server.requests.length === count && clock.monotonicMs(),
          ),
        );
      expect((await ending).kind).to.equal("success");
      const waits = at.slice(1).map((time, index) => Math.round((time - (at[index] ?? 0)) / 1_000));
      expect(waits).to.deep.equal([1, 2, 4]);
    });

    it("does not charge the item that meets it to the end", async () => {
      const { ask, logger } = make(["max_tries = 3"]);
      server.misbehave({ kind: "throttle", retryAfter: "1" }, 3);
      expect(await settleWith(clock, ask(chat("a")))).to.deep.equal({ kind: "preempted" });
      expect(server.requests).to.have.length(3);
      expect(logger.lines.map(({ message }) => message)).to.deep.equal([
        "the server does not answer as it should; trying again",
      ]);
    });

    it("waits for no quota that is spent", async () => {
      const spent = { kind: "status", status: 429, message: "pay first", code: "insufficient_quota" };
      expect(await make().ask(chat("a", behave(spent)))).to.deep.include({
        kind: "error",
        message: "429 Too Many Requests: pay first",
      });
    });

    it("gets everything through a server that takes fewer than it has slots", async () => {
      const narrow = await OpenAiServer.start({ clock, capacity: 2, latencyMs: 200 });
      closing(() => narrow.close());
      const { ask } = make(["max_tries = 100"], { slots: 8 }, narrow.url);
      let done = 0;
      const endings = Array.from({ length: 24 }, (_, at) =>
        ask(chat(`${at}`)).then((outcome) => {
          done++;
          return outcome.kind;
        }),
      );
      await passUntil(clock, "all answers", () => done === 24);
      expect(new Set(await Promise.all(endings))).to.deep.equal(new Set(["success"]));
      // Three quarters of those that were too many at first are not sent again and again.
      expect(narrow.requests.length).to.be.below(24 + 40);
    });

    it("ends its wait when the item is not wanted any more", async () => {
      const { ask, logs } = make();
      server.misbehave({ kind: "throttle", retryAfter: "3000" });
      const controller = new AbortController();
      const ending = ask(chat("a"), controller.signal);
      await passUntil(clock, "the refusal", () => logs.length > 0, 0);
      controller.abort();
      expect(await ending).to.deep.equal({ kind: "preempted" });
      await clock.advance();
      expect(clock.armed).to.equal(0);
    });
  });

  describe("when the server fails", () => {
    beforeEach(() => start());

    it("asks again, and then no more than it may", async () => {
      const { ask, logs } = make();
      server.misbehave({ kind: "status", status: 500 }, 2);
      expect((await settleWith(clock, ask(chat("a")))).kind).to.equal("success");
      server.misbehave({ kind: "status", status: 500, message: "index out of range" }, 5);
      expect(await settleWith(clock, ask(chat("a")), 1_000)).to.deep.include({
        kind: "error",
        message: "500 Internal Server Error: index out of range",
      });
      expect([server.requests.length, logs.length]).to.deep.equal([8, 7]);
    });

    for (const [what, behaviour] of [
      ["cuts off the connection", { kind: "cut" }],
      ["cuts off the answer", { kind: "truncate" }],
      ["says nothing that is HTTP", { kind: "noise" }],
      ["is a gateway that has lost it", { kind: "status", status: 502 }],
      ["is being started", { kind: "status", status: 503 }],
      ["says 408", { kind: "status", status: 408 }],
    ] as const)
      it(`asks again when it ${what}`, async () => {
        const { ask } = make(['output = "message"']);
        server.misbehave(behaviour);
        expect(textOf(await settleWith(clock, ask(chat("a"))))).to.equal(`"${answerTo("a", 1)}"`);
        expect(server.requests).to.have.length(2);
      });

    it("asks again when a stream ends in its middle, or says that it failed", async () => {
      const { ask } = make(["stream = true", 'output = "message"']);
      server.misbehave({ kind: "truncate" });
      server.misbehave({ kind: "fail_in_stream", code: 500, message: "out of memory" });
      expect(textOf(await settleWith(clock, ask(chat("a b c"))))).to.equal(`"${answerTo("a b c", 3)}"`);
      expect(server.requests).to.have.length(3);
      server.misbehave({ kind: "fail_in_stream", code: 400, message: "too long" });
      expect(await ask(chat("a"))).to.deep.include({ kind: "error", message: "400 in the stream: too long" });
    });

    it("says that it died under all of them, or under this one alone", async () => {
      const { ask } = make(["max_tries = 1"]);
      const message = "the server broke off: 502 Bad Gateway";
      const item = chat("a", behave({ kind: "status", status: 502 }));
      expect(await ask(item)).to.deep.equal({ kind: "crash_shared", message });
      expect(await ask(item, undefined, { alone: true })).to.deep.equal({ kind: "crash", message });
    });

    it("says so as soon as it was cut off and nobody is there any more", async () => {
      const { ask, logs } = make();
      const item = chat("a", behave({ kind: "die" }));
      const outcome = await settleWith(clock, ask(item));
      expect([outcome.kind, server.requests.length, logs.length]).to.deep.equal(["crash_shared", 1, 2]);
    });

    it("takes a new connection when one that was kept is gone, and none of the others that were", async () => {
      const { ask, logs } = make(["max_tries = 1"]);
      const together = ["a", "b"].map((text) => ask(chat(text, behave({ kind: "slow", delayMs: 100 }))));
      for (const ending of together) await settleWith(clock, ending);
      server.misbehave({ kind: "cut" });
      expect((await ask(chat("c"))).kind).to.equal("success");
      expect([server.connections, logs]).to.deep.equal([3, []]);
    });
  });

  describe("when the server is silent", () => {
    beforeEach(() => start());

    it("asks once more after the time of a request, and then says that the time is over", async () => {
      const { ask, logs } = make(['timeout = "90s"']);
      server.misbehave({ kind: "stall" }, 2);
      const at: number[] = [clock.monotonicMs()];
      const ending = ask(chat("a"));
      await eventually("the first request", () => server.requests.length === 1);
      await clock.advance(89_999);
      await settleSockets();
      const before = logs.length;
      await clock.advance(1);
      at.push(
        await passUntil(
          clock,
          "the second request",
          () => server.requests.length === 2 && clock.monotonicMs(),
        ),
      );
      expect(await settleWith(clock, ending, 1_000)).to.deep.equal({
        kind: "timeout",
        message: "no byte for 90s",
      });
      expect([before, logs]).to.deep.equal([
        0,
        ["try 1 of 5: no byte for 90s\n", "try 2 of 5: no byte for 90s\n"],
      ]);
    });

    it("takes the word of a gateway for it", async () => {
      server.misbehave({ kind: "status", status: 504 }, 2);
      expect(await settleWith(clock, make().ask(chat("a")))).to.deep.equal({
        kind: "timeout",
        message: "504 Gateway Timeout",
      });
      expect(server.requests).to.have.length(2);
    });

    it("does not take a slow stream for silence", async () => {
      const slow = await OpenAiServer.start({ clock, latencyMs: 1_000 });
      closing(() => slow.close());
      const { ask } = make(['timeout = "1500ms"', "stream = true", 'output = "message"'], {}, slow.url);
      const text = "a b c d e f g h i j k l m n o p q r s t u v w x y z";
      const outcome = await settleWith(clock, ask(chat(text)), 10);
      expect([textOf(outcome), slow.requests.length]).to.deep.equal([`"${answerTo(text, 26)}"`, 1]);
    });

    it("hangs up when the item is not wanted any more", async () => {
      const { ask } = make();
      server.misbehave({ kind: "stall" });
      const controller = new AbortController();
      const ending = ask(chat("a"), controller.signal);
      await eventually("the request", () => server.underWay === 1);
      controller.abort();
      expect(await ending).to.deep.equal({ kind: "preempted" });
      await eventually("the server to notice", () => server.underWay === 0);
      expect(clock.armed).to.equal(0);
    });
  });

  describe("tells its trouble", () => {
    it("while items wait for a server that is not there, and how long they have", async () => {
      const { port } = new URL(`http://${await restartableAddress()}`);
      const { ask, backend } = make(["max_tries = 100"], {}, `http://127.0.0.1:${port}/v1?key=secret`);
      expect(backend.trouble()).to.equal(undefined);
      const controller = new AbortController();
      const ending = ask(chat("a"), controller.signal);
      const where = `http://127.0.0.1:${port}`;
      const first = await eventually("the trouble", () => backend.trouble());
      expect(first).to.equal(`waiting for the server at ${where}: the connection was refused, for 0 s`);
      await clock.advance(500);
      await passUntil(clock, "it goes on", () => backend.trouble()?.endsWith("refused, for 40 s"));
      controller.abort();
      await ending;
      expect(backend.trouble()).to.equal(undefined);
    });

    it("until the server answers", async () => {
      await start();
      const { ask, backend } = make(['headers = { authorization = "Bearer ${KEY}" }'], {
        env: { KEY: "very-secret" },
      });
      server.misbehave({ kind: "throttle", retryAfter: "30" });
      const ending = ask(chat("a"));
      expect(await eventually("the trouble", () => backend.trouble())).to.equal(
        `the server at ${new URL(server.url).origin} asks for a pause: 429 Too Many Requests, for 0 s`,
      );
      const slow = ask(chat("b", behave({ kind: "slow", delayMs: 60_000 })));
      expect((await settleWith(clock, ending, 1_000)).kind).to.equal("success");
      expect(backend.trouble()).to.equal(undefined);
      expect((await settleWith(clock, slow, 1_000)).kind).to.equal("success");
    });
  });

  describe("when nobody is there", () => {
    const away = (): Promise<string> => restartableAddress();

    it("gives the item back before its time is over, uncharged", async () => {
      const { ask, logger } = make(["max_tries = 100"], {}, `http://${await away()}/v1`);
      const from = clock.monotonicMs();
      expect(await settleWith(clock, ask(chat("a")), 500)).to.deep.equal({ kind: "preempted" });
      expect(clock.monotonicMs() - from).to.be.within(60_000, 61_000);
      expect(logger.lines.map(({ fields }) => fields)).to.deep.equal([
        { trouble: "absent", reason: "the connection was refused" },
      ]);
    });

    it("is broken in the end, and says what is missing", async () => {
      const url = `http://${await away()}/v1`;
      const { ask, broken } = make(['ready_timeout = "60s"'], {}, url);
      while (broken.length === 0) {
        expect(await settleWith(clock, ask(chat("a")), 500)).to.deep.equal({ kind: "preempted" });
        await clock.advance(5_000);
      }
      expect(broken).to.deep.equal([
        `the server at ${url} cannot be used for 1m: the connection was refused`,
      ]);
      expect(await ask(chat("a"))).to.deep.equal({ kind: "preempted" });
    });

    it("counts anew when somebody was there in between", async () => {
      await start();
      const { ask, broken } = make(['ready_timeout = "60s"', "max_tries = 1"]);
      for (let round = 0; round < 3; round++) {
        server.misbehave({ kind: "status", status: 503 });
        expect((await settleWith(clock, ask(chat("a")))).kind).to.equal("preempted");
        await clock.advance(40_000);
        expect((await settleWith(clock, ask(chat("a")))).kind).to.equal("success");
      }
      expect(broken).to.deep.equal([]);
    });

    it("goes on when somebody is, with all that waited", async () => {
      const address = await away();
      const { ask, logger } = make([], {}, `http://${address}/v1`);
      const endings = ["a", "b", "c", "d"].map((text) => ask(chat(text)));
      await passUntil(clock, "the trouble", () => logger.lines.length === 1);
      const late = await OpenAiServer.start({ clock, port: Number(address.split(":")[1]) });
      closing(() => late.close());
      for (const ending of endings) expect((await settleWith(clock, ending)).kind).to.equal("success");
      expect(logger.lines.at(-1)?.message).to.equal("the server answers again");
    });
  });

  it("sends no request to a server whose certificate it cannot verify", async () => {
    const authority = await TestAuthority.make();
    const { certificatePem: cert, keyPem: key } = await authority.forge({
      uris: [],
      hosts: ["localhost"],
      usage: "server",
    });
    const asked: unknown[] = [];
    const stranger = createTlsServer({ cert, key }, (request, response) => {
      asked.push(request.url);
      response.end();
    });
    await new Promise<void>((resolve) => void stranger.listen(0, "127.0.0.1", resolve));
    closing(() => stranger.close());
    const { ask, logger } = make(["max_tries = 1"], {}, `https://localhost:${portOf(stranger)}/v1`);
    expect(await ask(chat("a"))).to.deep.equal({ kind: "preempted" });
    expect([asked, logger.lines[0]?.fields["reason"]]).to.deep.equal([
      [],
      "nobody known has signed its certificate (NODE_EXTRA_CA_CERTS names more authorities)",
    ]);
  });

  describe("when an answer is too large", () => {
    beforeEach(() => start());

    it("stops reading and says so", async () => {
      const { ask } = make([], { maxOutputBytes: 1_000 });
      expect(await ask(chat("a", behave({ kind: "huge", bytes: 1_001 })))).to.deep.equal({
        kind: "too_large",
      });
      expect((await ask(chat("a", behave({ kind: "huge", bytes: 1_000 })))).kind).to.equal("success");
      expect((await ask(chat("a b ".repeat(1_000), { stream: true }))).kind).to.equal("too_large");
    });

    it("accepts it when the part that is the output is within the limit", async () => {
      const { ask } = make(['output = "/id"'], { maxOutputBytes: 100 });
      expect((await ask(chat("a b ".repeat(1_000)))).kind).to.equal("success");
    });
  });

  it("does not reuse a connection over which a request was not sent whole", async () => {
    const sockets: Socket[] = [];
    const hasty = createServer((socket: Socket) => {
      sockets.push(socket.on("error", () => undefined));
      // It answers the beginning, and does not read the rest.
      socket.once("data", () => socket.pause().write("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"));
    });
    await new Promise<void>((resolve) => void hasty.listen(0, "127.0.0.1", resolve));
    closing(() => hasty.close());
    const { ask } = make([], {}, `http://127.0.0.1:${portOf(hasty)}/`);
    const outcome = await ask(Buffer.alloc(16 * 1_024 * 1_024, "x"));
    expect(outcome).to.deep.include({ kind: "error", message: "413 Too Large" });
    sockets[0]?.resume();
    await eventually("the end of the connection", () => sockets[0]?.destroyed);
  });

  it("stops reading an answer that does not end", async () => {
    const flood = createServer((socket: Socket) => {
      socket.on("error", () => undefined);
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      const more = (): void => void (socket.writable && socket.write("x".repeat(65_536), more));
      more();
    });
    const url = await new Promise<string>((resolve) => {
      flood.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${portOf(flood)}`));
    });
    closing(() => flood.close());
    expect(await make([], {}, url).ask("x")).to.deep.equal({ kind: "too_large" });
  });

  it("ends what is under way when it is closed", async () => {
    await start();
    const { ask, backend } = make();
    server.misbehave({ kind: "stall" }, 4);
    const endings = ["a", "b", "c", "d", "e"].map((text) => ask(chat(text)));
    await eventually("the requests", () => server.underWay === 4);
    await backend.close();
    expect(new Set((await Promise.all(endings)).map(({ kind }) => kind))).to.deep.equal(
      new Set(["preempted"]),
    );
    await eventually("the server to notice", () => server.underWay === 0);
    expect([server.requests.length, clock.armed]).to.deep.equal([4, 0]);
  });

  it("lets go of the connections that it has kept when it is closed", async () => {
    await start();
    const { ask, backend } = make();
    await ask(chat("a"));
    expect(server.openConnections).to.equal(1);
    await backend.close();
    await eventually("the end of the connection", () => server.openConnections === 0);
  });
});

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}
