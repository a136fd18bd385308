import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { expect } from "chai";
import { createInspector } from "@statelyai/inspect";
import type { StatelyInspectionEvent } from "@statelyai/inspect";
import { createActor } from "xstate";
import { WebSocketServer } from "ws";
import type { WebSocket } from "ws";
import { charts } from "../../../machines/index.ts";
import { systemClock } from "../../../src/base/clock.ts";
import type { Clock } from "../../../src/base/clock.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { StatelySender } from "../../../src/inspector/stately-sender.ts";
import type { ToldActor } from "../../../src/inspector/told-charts.ts";
import { useClosers } from "../../support/closers.ts";
import { eventually } from "../../support/eventually.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { hastyClock } from "../../support/hasty-clock.ts";

const DRAIN: ToldActor = {
  ...{ sessionId: "spot-drain/w", chart: "spot-drain", name: "worker w", rootId: "spot-drain/w" },
  parentId: undefined,
};

interface SenderParts {
  readonly clock: Clock;
  readonly onOpen: () => void;
}

interface Message {
  readonly type: string;
  readonly sessionId: string;
  readonly snapshot: { readonly value: unknown; readonly status: string; readonly context: object };
}

describe("the sender to an inspector of Stately's", () => {
  const closeLater = useClosers();

  async function listen(server: Server): Promise<string> {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  }

  async function relay() {
    const http = createServer();
    const url = await listen(http);
    await new Promise((resolve) => http.close(resolve));
    const server = new WebSocketServer({ host: "127.0.0.1", port: Number(new URL(url).port) });
    closeLater(() => {
      for (const client of server.clients) client.terminate();
      server.close();
    });
    const received: Message[] = [];
    const connections: WebSocket[] = [];
    server.on("connection", (connection) => {
      connections.push(connection);
      connection.on("message", (data: Buffer) => received.push(JSON.parse(data.toString()) as Message));
    });
    return { url, received, connections };
  }

  function sender(url: string, { clock = systemClock, onOpen = () => {} }: Partial<SenderParts> = {}) {
    const log = new RecordingLogger();
    const made = new StatelySender({ url, clock, random: seededRandom(1), log, onOpen });
    closeLater(() => made.close());
    return { sender: made, log };
  }

  it("sends what the package sends for the same machine, with the facts that may leave and no others", async () => {
    const { url, received } = await relay();
    const { sender: told } = sender(url);
    told.place(DRAIN, "Idle", {
      worker_id: "w",
      cause: null,
      boot: "b",
      deadlineMs: 5,
      machineEndsMs: 7,
      token: "s",
    });
    const facts = { worker_id: "w".repeat(101), cause: "a secret with blanks", incarnation: "i", key: "s" };
    await eventually("its actor", () => received.length === 1);
    told.step(DRAIN.sessionId, { event: "drain.requested", state: "Draining.Finishing", facts, atMs: 9.4 });
    await eventually("its step", () => received.length === 3);

    const sent: StatelyInspectionEvent[] = [];
    const inspector = createInspector({ send: (event) => void sent.push(event) });
    const actor = createActor(charts["spot-drain"].machine, { inspect: inspector.inspect }).start();
    await eventually("the package's own", () => sent.length === 3);
    actor.stop();
    const [own, event, snapshot] = sent.map(
      (one) => JSON.parse(JSON.stringify(one)) as Message & { definition: string },
    );
    const [first, second, third] = received as (Message & { definition: string })[];
    const keys = (one: object | undefined): string[] => Object.keys(one ?? {}).sort();
    expect(keys(first)).to.deep.equal(keys(own));
    expect(keys(second)).to.deep.equal(keys(event));
    expect(keys(third)).to.deep.equal(keys(snapshot));
    expect(keys(third?.snapshot)).to.deep.equal(keys(snapshot?.snapshot));
    expect(JSON.parse(first?.definition ?? "")).to.deep.equal(JSON.parse(own?.definition ?? ""));
    expect(first?.snapshot).to.deep.include({
      status: "active",
      value: "Idle",
      context: { worker_id: "w", cause: null },
    });
    expect(second).to.deep.include({
      type: "@xstate.event",
      event: { type: "drain.requested" },
      createdAt: "9",
    });
    expect(third?.snapshot).to.deep.include({
      value: { Draining: "Finishing" },
      context: { incarnation: "i" },
    });
  });

  it("drops what a slow inspector does not take, counts it, and tells in the end where everybody is", async () => {
    const { url, received, connections } = await relay();
    const opened = Promise.withResolvers<undefined>();
    const { sender: told, log } = sender(url, { onOpen: () => opened.resolve(undefined) });
    const connection = await eventually("a connection", () => connections[0]);
    connection.pause();
    await opened.promise;
    const actors = Array.from({ length: 50 }, (_, at) => ({ ...DRAIN, sessionId: `spot-drain/${at}` }));
    for (const actor of actors) told.place(actor, "Idle", {});
    const states = ["Draining.HandingBack", "Draining.Finishing"];
    for (let at = 0; told.dropped < 5_000; at++)
      for (const { sessionId } of actors)
        told.step(sessionId, { event: "e", state: states[at % 2] ?? "", atMs: at });
    // There is no room for it either.
    const late = { ...DRAIN, sessionId: "spot-drain/late" };
    actors.push(late);
    told.place(late, "Idle", {});
    for (const { sessionId } of actors) told.step(sessionId, { event: "last", state: "Drained", atMs: 1 });
    expect(log.lines.filter(({ level }) => level === "warn")).to.deep.equal([]);
    connection.resume();
    await eventually("where all of them are", () =>
      actors.every(({ sessionId }) => {
        const last = received.findLast((message) => message.sessionId === sessionId);
        return last?.snapshot.value === "Drained";
      }),
    );
    const known = new Set<string>();
    for (const { type, sessionId } of received) {
      if (type === "@xstate.actor") known.add(sessionId);
      else expect(known).to.include(sessionId);
    }
    told.close();
    const dropped = log.lines.find(({ message }) => message.includes("dropped"));
    expect(dropped?.fields["count"]).to.equal(told.dropped);
  });

  it("connects again, ever more rarely, and then tells all of it anew", async () => {
    const { url, received, connections } = await relay();
    let opened = 0;
    const { sender: told } = sender(url, { clock: hastyClock(20), onOpen: () => void opened++ });
    told.place(DRAIN, "Idle", {});
    (await eventually("a connection", () => connections[0])).terminate();
    told.step(DRAIN.sessionId, { event: "e", state: "Drained", atMs: 1 });
    const isTold = (message: Message): boolean =>
      message.type === "@xstate.actor" && message.snapshot.value === "Drained";
    await eventually("where it is", () => received.some(isTold));
    expect(opened).to.equal(2);
    told.end(DRAIN.sessionId);
    await eventually("its end", () => received.at(-1)?.snapshot.status === "stopped");
    expect(told.isKnown(DRAIN.sessionId)).to.equal(false);
  });

  it("outlives inspectors that are none, that hang up, that never answer and that send without end", async () => {
    const sockets = new Set<Socket>();
    let [tries, junk] = [0, Buffer.from("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\n\r\n")];
    const server = createServer((socket) => {
      tries++;
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.write(junk);
      if (tries % 2 === 0) socket.destroy();
    });
    closeLater(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const { sender: told, log } = sender(await listen(server), { clock: hastyClock(20) });
    await eventually("some tries", () => tries > 3);
    junk = Buffer.alloc(100_000, "x");
    await eventually("some more", () => tries > 6);
    expect(log.lines.filter(({ level }) => level === "warn")).to.have.length(1);
    for (let at = 0; at < 5_000; at++) told.place({ ...DRAIN, sessionId: `s${at}` }, "Idle", {});
    expect([...told.sessions]).to.have.length(2_000);

    const { url, connections, received } = await relay();
    const { sender: other } = sender(url, { clock: hastyClock(20) });
    other.place(DRAIN, "Idle", {});
    const connection = await eventually("a connection", () => connections[0]);
    const gone = once(connection, "close");
    const flood = (): void => {
      if (connection.readyState !== connection.OPEN) return;
      if (connection.bufferedAmount < 8_000_000) connection.send(Buffer.alloc(4_000_000), flood);
    };
    flood();
    await gone;
    await eventually("that it is told again", () => connections.length > 1 && received.length > 1);
  });
});
