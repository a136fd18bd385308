import { expect } from "chai";
import { OpenAiServer } from "../../examples/openai-server/server.ts";
import { HttpBackend } from "../../src/worker/backends/http/http-backend.ts";
import { chat, specOf } from "../unit/worker/backends/http/asking.ts";
import { OUTPUT_LIMIT } from "../support/backend-case.ts";
import { backendCase } from "./backend-cases/http-case.ts";
import { BackendRig, isRunning, pidsIn } from "../support/backend-rig.ts";
import { useClosers } from "../support/closers.ts";
import { eventually } from "../support/eventually.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";
import { backendContract } from "./backend.ts";

backendContract(backendCase);

describe("backend contract: http, of a server that it launched", () => {
  const closing = useClosers();
  const directory = useTemporaryDirectory();

  it("ends the server, what the server has started and the items in it when the backend is closed", async () => {
    const rig = await BackendRig.open(backendCase, directory.path);
    closing(() => rig.close());
    const pids = directory.file("pids");
    rig.give({ do: "hang", pids, stubborn: true });
    const started = await pidsIn(pids);
    await rig.close();
    expect(started.filter(isRunning)).to.deep.equal([]);
  });
});

describe("backend contract: http, of a server that is there", () => {
  const closing = useClosers();
  const directory = useTemporaryDirectory();
  let server: OpenAiServer;
  let rig: BackendRig;

  beforeEach(async () => {
    server = await OpenAiServer.start();
    closing(() => server.close());
    const spec = specOf(`url = "${server.url}"`, 'output = "message"', "stream = true");
    const workingDirectory = directory.path;
    rig = await BackendRig.open(
      {
        open: (surroundings) =>
          new HttpBackend({
            ...surroundings,
            spec,
            slots: 4,
            maxOutputBytes: OUTPUT_LIMIT,
            workingDirectory,
          }),
      },
      directory.path,
    );
    closing(() => rig.close());
  });

  const item = (text: string, more: Record<string, unknown> = {}): Uint8Array =>
    Buffer.from(JSON.stringify(chat(text, more)));
  const hang = item("x", { behave: { kind: "stall" } });
  const hasHungUp = (): Promise<boolean> => eventually("it hangs up", () => server.underWay === 0);

  it("ends the connection when an item's time is over, and reports a timeout", async () => {
    const { outcome } = await rig.run(hang, { timeoutMs: 100 });
    expect(outcome).to.deep.equal({ kind: "timeout", message: "took longer than 100ms" });
    await hasHungUp();
    expect((await rig.run(item("again"))).outcome.kind).to.equal("success");
  });

  it("does not count a pause that the server asked for as the item's time", async () => {
    server.misbehave({ kind: "throttle", retryAfter: "0.5" });
    const { outcome } = await rig.run(item("x"), { timeoutMs: 400 });
    expect(outcome.kind).to.equal("success");
  });

  it("ends the connection of an item that is dropped, and reports no result", async () => {
    const { key } = rig.give(hang);
    await eventually("the request", () => server.underWay === 1);
    rig.executor.drop(key);
    await hasHungUp();
    await eventually("its slot is free", () => rig.executor.load === 0);
    expect(rig.finished).to.deep.equal([]);
  });

  it("hands back at a drain what the server has not answered", async () => {
    const given = rig.give(hang);
    await eventually("the request", () => server.underWay === 1);
    rig.executor.drain();
    await rig.executor.abandon(5_000);
    expect((await rig.end(given)).outcome.kind).to.equal("preempted");
    await hasHungUp();
  });
});
