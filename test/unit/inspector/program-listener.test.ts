import { request } from "node:http";
import { expect } from "chai";
import { WebSocket } from "ws";
import { sleep, systemClock } from "../../../src/base/clock.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import type { ActorRow, LogEntry, PageNews } from "../../../src/inspector/page-messages.ts";
import { ProgramListener } from "../../../src/inspector/program-listener.ts";
import { PROGRAM_LIMITS } from "../../../src/inspector/program-limits.ts";
import { ProgramView } from "../../../src/inspector/program.ts";
import { useClosers } from "../../support/closers.ts";
import { eventually } from "../../support/eventually.ts";
import { ProgramClient } from "./program-client.ts";

const LIGHT = {
  id: "light",
  initial: "green",
  states: { green: { on: { GO: "red" } }, red: { initial: "walk", states: { walk: {}, wait: {} } } },
};

/** Programs are read in windows of this length, and have a share of each. */
const WINDOW_MS = 100;

describe("programs that connect to the inspector", () => {
  const closeLater = useClosers();

  async function open(drawingLimitMs?: number) {
    const listener = await ProgramListener.open({
      ...{ listenAddr: "127.0.0.1:0", setting: "--listen" },
      ...{ clock: systemClock, random: systemRandom, log: silentLogger },
      ...(drawingLimitMs !== undefined && { drawingLimitMs }),
    });
    closeLater(() => listener.close());
    const connect = async (name: string): Promise<ProgramClient> => {
      const client = await ProgramClient.connect(`${listener.listensAt}&name=${name}`);
      closeLater(() => client.close());
      return client;
    };
    return { listener, connect };
  }

  function seen(listener: ProgramListener, name: string) {
    return seenIn(listener.whole(), name);
  }

  function seenIn(news: readonly PageNews[], name: string) {
    const programs = news.flatMap((one) => (one.kind === "program" ? one.program : []));
    const program = programs.findLast((one) => one.name === name);
    const rows: ActorRow[] = [];
    const entries: LogEntry[] = [];
    let dropped = 0;
    for (const one of news) {
      if (one.kind === "actors" && one.program_id === program?.program_id) rows.push(...one.changed);
      if (one.kind !== "log" || one.program_id !== program?.program_id) continue;
      entries.push(...one.entries);
      dropped += one.dropped;
    }
    const complaints = program?.complaints ?? [];
    return { program, id: program?.program_id ?? "", complaints, rows, entries, dropped };
  }

  /** The rest of what it says is read by then. */
  function until(listener: ProgramListener, name: string, sessionId: string): Promise<ActorRow> {
    return eventually(`${sessionId} of ${name}`, () =>
      seen(listener, name).rows.find(({ session_id }) => session_id === sessionId),
    );
  }

  it("are shown with their actors as a tree, where they are, what they did, and their charts", async () => {
    const { listener, connect } = await open();
    const news: PageNews[] = [];
    listener.follow((one) => void news.push(one));
    const client = await connect("shop");
    client.machine("x:0", LIGHT, { snapshot: { value: "green", status: "active" } });
    client.actor("x:1", { parentId: "x:0", definition: '{"id":"x:1"}' });
    client.event("x:0", { type: "GO", by: "me" });
    client.snapshot("x:0", { value: { red: "walk" }, status: "active", context: { cars: 2 } });
    const row = await eventually("its chart", () =>
      seenIn(news, "shop").rows.find(({ definition }) => definition),
    );
    expect(row).to.deep.include({ session_id: "x:0", parent_id: null, name: "x:0", value: "red.walk" });
    const child = seen(listener, "shop").rows.find(({ session_id }) => session_id === "x:1");
    expect(child).to.deep.include({ parent_id: "x:0", definition: null });
    const { id, entries } = seenIn(news, "shop");
    expect(entries.map(({ number, at_ms: _, ...entry }) => ({ ...entry, number }))).to.deep.equal([
      {
        number: 1,
        session_id: "x:0",
        kind: "event",
        event: "GO",
        value: "",
        detail: '{"type":"GO","by":"me"}',
      },
      {
        number: 2,
        session_id: "x:0",
        kind: "snapshot",
        event: "GO",
        value: "red.walk",
        detail: '{"cars":2}',
      },
    ]);
    const picture = await listener.definition(id, row.definition ?? "");
    expect(picture?.svg).to.include('data-path="red.walk"');
    expect(picture?.states.map(({ path }) => path)).to.deep.equal([
      "",
      "green",
      "red",
      "red.walk",
      "red.wait",
    ]);
    expect(await listener.definition(id, "0".repeat(32))).to.equal(undefined);
    expect(await listener.definition("p99", row.definition ?? "")).to.equal(undefined);

    client.close();
    await eventually("that it has gone", () => seenIn(news, "shop").program?.connected === false);
    // It is back, and there once.
    await connect("shop");
    await eventually("that the former one is not shown", () =>
      news.some(({ kind }) => kind === "program_gone"),
    );
    expect(listener.whole().filter(({ kind }) => kind === "program")).to.have.length(1);
  });

  it("are let in with the token alone, by a name of this machine, and as many as there is room for", async () => {
    const { listener, connect } = await open();
    const status = (url: string, headers: Record<string, string> = {}): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const socket = new WebSocket(url, { headers });
        socket.on("unexpected-response", (_, { statusCode }) => resolve(statusCode));
        socket.on("open", () => reject(new Error("it was let in")));
        socket.on("error", reject);
      });
    const { origin, host } = new URL(listener.listensAt.replace("ws:", "http:"));
    const bare = `ws://${host}/`;
    expect(await status(bare)).to.equal(401);
    expect(await status(`${bare}?token=${"A".repeat(22)}`)).to.equal(401);
    expect(await status(listener.listensAt.replace("/?", "/else?"))).to.equal(404);
    expect(await status(listener.listensAt, { host: "evil.example" })).to.equal(421);
    const answered = await new Promise<number | undefined>((resolve, reject) =>
      request(`${origin}/?token=x`, (response) => resolve(response.resume().statusCode))
        .on("error", reject)
        .end(),
    );
    expect(answered).to.equal(426);
    for (let at = 0; at < PROGRAM_LIMITS.programs; at++) await connect(`one-${at}`);
    expect(await status(listener.listensAt)).to.equal(503);
  });

  it("that say what is broken, hostile or too large are complained of by name, and others are as they were", async () => {
    const { listener, connect } = await open();
    const [good, bad] = [await connect("good"), await connect("bad")];
    bad.machine("a<script>", { initial: "x<b>", states: { "x<b>": { entry: ["</svg>"] } } });
    bad.machine("b", { initial: "nowhere", states: { x: {} } }, { name: "b\u001b[2J<b>" });
    bad.machine("c", '{"initial":"a","states":{"a":{},"__proto__":{}}}');
    const states = Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`s${at}`, {}]));
    bad.machine("d", { initial: "s0", states });
    bad.machine("e", {
      initial: "s0",
      states: { s0: { description: "x".repeat(PROGRAM_LIMITS.definitionCharacters) } },
    });
    // Its share of the next window.
    await sleep(systemClock, WINDOW_MS);
    bad.raw("[".repeat(100_000));
    bad.raw("{");
    bad.raw("null");
    bad.raw(Buffer.from([1, 2, 3]));
    bad.send({ type: "@xstate.snapshot", _version: "0.7.2", sessionId: 7 });
    bad.send({ type: "@xstate.unheard", _version: "0.7.2", sessionId: "z" });
    bad.raw(
      '{"_version":"1","type":"@xstate.snapshot","sessionId":"__proto__","snapshot":{"__proto__":{"value":"x"},"context":{"__proto__":1}}}',
    );
    await sleep(systemClock, WINDOW_MS);
    const deep = `${'{"a":'.repeat(200_000)}"end"${"}".repeat(200_000)}`;
    bad.raw(
      `{"_version":"1","type":"@xstate.snapshot","sessionId":"deep","event":{},"snapshot":{"value":${deep},"context":${deep}}}`,
    );
    // A circle of parents, and one who is his own.
    bad.actor("p", { parentId: "q" });
    bad.actor("q", { parentId: "p" });
    bad.actor("self", { parentId: "self" });
    bad.snapshot("last", { value: "end", context: { list: Array.from({ length: 100_000 }, (_, at) => at) } });
    await until(listener, "bad", "last");
    good.machine("x:0", LIGHT, { snapshot: { value: "green" } });
    const row = await eventually("the chart of the good one", () =>
      seen(listener, "good").rows.find(({ definition }) => definition !== null),
    );
    expect((await listener.definition(seen(listener, "good").id, row.definition ?? ""))?.svg).to.include(
      "green",
    );
    expect(seen(listener, "good").complaints).to.deep.equal([]);

    const { complaints, rows, entries, id } = seen(listener, "bad");
    const all = complaints.join("\n");
    expect(all).to.include("the definition of b\\u001b[2J<b> is not drawn: ").and.include('"nowhere"');
    expect(all).to.include("the definition of c is not drawn: it calls something __proto__");
    expect(all).to.include("the definition of d is not drawn: it has more than 10000 states");
    expect(all).to.include("the definition of e is too large: 1.0 MiB");
    expect(all).to.include("messages that are no JSON: 2 were left out");
    expect(all).to.include("messages of another protocol: 1").and.include("messages that name no actor: 1");
    expect(all).to.include("binary messages: 1").and.include("messages of a kind that is not known here: 1");
    expect(all).to.include("its actors are no tree");
    const parents = new Map(rows.map(({ session_id, parent_id }) => [session_id, parent_id]));
    expect([parents.get("p"), parents.get("q"), parents.get("self")]).to.deep.equal(["q", null, null]);
    expect(rows.find(({ session_id }) => session_id === "__proto__")).to.deep.include({ value: "" });
    expect(
      rows.filter(({ definition }) => definition !== null).map(({ session_id }) => session_id),
    ).to.deep.equal(["a<script>"]);
    for (const { detail, value } of entries) expect(detail.length + value.length).to.be.at.most(1_100);
    const hostile = rows.find(({ session_id }) => session_id === "a<script>");
    const picture = await listener.definition(id, hostile?.definition ?? "");
    expect(picture?.svg).to.include("x&lt;b&gt;").and.not.include("<b>");

    bad.raw("x".repeat(PROGRAM_LIMITS.messageBytes + 1));
    expect(await bad.closed).to.equal(1009);
    await eventually("the complaint", () =>
      seen(listener, "bad").complaints.some((one) => one.includes("disconnected")),
    );
    good.snapshot("x:0", { value: { red: "wait" } });
    await eventually("that the good one goes on", () => seen(listener, "good").rows[0]?.value === "red.wait");
  });

  it("that flood are read as far as their share goes, while another one is read in full", async () => {
    const { listener, connect } = await open();
    const news: PageNews[] = [];
    listener.follow((one) => void news.push(one));
    const [flood, quiet] = [await connect("flood"), await connect("quiet")];
    let isOver = false;
    const fill = (): void => {
      if (isOver) return;
      for (let at = 0; at < 2_000; at++) flood.snapshot(`f${at}`, { value: "on", context: { at } });
      systemClock.nextTurn(fill);
    };
    fill();
    for (let at = 0; at < 200; at++) {
      quiet.snapshot("q", { value: `s${at}`, context: {} });
      if (at % 20 === 0)
        await eventually(`step ${at}`, () => seen(listener, "quiet").rows[0]?.value === `s${at}`);
    }
    await eventually("the last step", () => seenIn(news, "quiet").entries.at(-1)?.value === "s199");
    isOver = true;
    expect(seenIn(news, "quiet").entries).to.have.length(200);
    expect(seen(listener, "quiet").complaints).to.deep.equal([]);
    await eventually("the complaint", () =>
      seen(listener, "flood").complaints.some((one) => one.includes("more than is read")),
    );
    const { entries, dropped } = seenIn(news, "flood");
    expect(dropped).to.be.greaterThan(0);
    expect(entries.at(-1)?.number).to.equal(entries.length + dropped);
  });

  it("have room for so many actors, of which those that have ended go first", () => {
    const view = new ProgramView({ programId: "p1", givenName: "crowd", sinceMs: 0 });
    const take = (sessionId: string, status = "active"): boolean =>
      view.take(
        { ...{ kind: "snapshot", sessionId, createdAtMs: 0, event: "", value: "on", detail: "" }, status },
        0,
      );
    for (let at = 0; at < PROGRAM_LIMITS.actors; at++) take(`a${at}`, at === 5 ? "done" : "active");
    expect([take("later"), take("too late")]).to.deep.equal([true, false]);
    const { rows, complaints } = seenIn(view.whole(), "crowd");
    const sessions = rows.map(({ session_id }) => session_id);
    expect(sessions).to.have.length(PROGRAM_LIMITS.actors);
    expect(sessions).to.include("later");
    expect(sessions.filter((session) => session === "a5" || session === "too late")).to.deep.equal([]);
    expect(complaints.join()).to.include(`more than ${PROGRAM_LIMITS.actors} actors`);
  });

  it("get no picture of a chart that takes too long to lay out, and others get theirs", async () => {
    const { listener, connect } = await open(2_500);
    const [slow, quick] = [await connect("slow"), await connect("quick")];
    const names = Array.from({ length: 31 }, (_, at) => `s${at}`);
    const states = Object.fromEntries(
      names.map((name) => [name, { on: Object.fromEntries(names.map((other) => [`to-${other}`, other])) }]),
    );
    slow.machine("x:0", { id: "knot", initial: "s0", states });
    quick.machine("x:0", LIGHT);
    const hash = async (name: string): Promise<string> =>
      eventually(`the chart of ${name}`, () => seen(listener, name).rows[0]?.definition ?? undefined);
    const [knot, light] = [await hash("slow"), await hash("quick")];
    const drawn = Promise.all([
      listener.definition(seen(listener, "slow").id, knot),
      listener.definition(seen(listener, "quick").id, light),
    ]);
    const [none, picture] = await drawn;
    expect(none).to.deep.include({ name: "knot", svg: null });
    expect(none?.states).to.have.length(32);
    expect(seen(listener, "slow").complaints).to.deep.equal([
      "a chart is not drawn: it takes longer than 2.5 s to draw",
    ]);
    expect(picture?.svg).to.include("green");
  });
});
