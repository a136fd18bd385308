import { expect } from "chai";
import { fileURLToPath } from "node:url";
import { AT_ONCE } from "../../../../../src/worker/backends/backend.ts";
import type { ChildHost } from "../../../../../src/worker/children/child-host.ts";
import type { Child, Children } from "../../../../../src/worker/children/child.ts";
import type { HttpBackendOptions } from "../../../../../src/worker/backends/http/http-backend.ts";
import { OpenAiServer } from "../../../../../examples/openai-server/server.ts";
import { openChildHost } from "../../../../support/child-host.ts";
import { useClosers } from "../../../../support/closers.ts";
import { eventually } from "../../../../support/eventually.ts";
import { RecordingLogger } from "../../../../support/recording-logger.ts";
import { useTemporaryDirectory } from "../../../../support/temporary-directory.ts";
import { chat, makeBackend, settleSockets, specOf, textOf } from "./asking.ts";
import type { Asking } from "./asking.ts";

const PROGRAM = fileURLToPath(new URL("../../../../../examples/openai-server.ts", import.meta.url));
const die = { behave: { kind: "die" } };

describe("a server that the worker launches", () => {
  const closing = useClosers();
  const directory = useTemporaryDirectory();
  let children: Child[];
  let host: ChildHost;

  beforeEach(async () => {
    children = [];
    const opened = await openChildHost(directory.file("children"), new RecordingLogger());
    ({ host } = opened);
    closing(() => opened.close());
  });

  function make(
    command: readonly string[],
    lines: readonly string[] = [],
    more: Partial<HttpBackendOptions> = {},
  ): Asking {
    const spawning: Children = {
      spawn: async (request) => {
        const start = await host.spawn(request);
        if (start.kind === "started") children.push(start.child);
        return start;
      },
    };
    const launch = `launch = ${JSON.stringify(command)}`;
    const spec = specOf('url = "http://127.0.0.1:{port}/v1"', launch, 'output = "message"', ...lines);
    const random = { unit: () => 0, bytes: () => new Uint8Array() };
    const asking = makeBackend(spec, {
      children: spawning,
      random,
      workingDirectory: directory.path,
      ...more,
    });
    closing(() => asking.backend.close());
    return asking;
  }

  const server = (...args: readonly string[]): string[] => [
    process.execPath,
    PROGRAM,
    "--port",
    "{port}",
    ...args,
  ];
  const script = (text: string): string[] => [process.execPath, "-e", text];

  const hasEnded = async (child: Child | undefined): Promise<boolean> => {
    await child?.exited;
    return child !== undefined && !isAlive(child.pid);
  };

  it("is waited for, asked, and ended with the backend", async () => {
    const { ask, backend, logger } = make(server("--load", "300"));
    expect(textOf(await ask(chat("hello")))).to.equal('"You asked in 1 word: hello"');
    const told = logger.lines.filter(({ level }) => level !== "debug").map(({ message }) => message);
    expect(told).to.deep.equal(["the server is ready"]);
    await backend.close();
    expect([children.length, await hasEnded(children[0])]).to.deep.equal([1, true]);
  });

  it("has the worker's environment and that of the manifest, with the port", async () => {
    const text = `
      require("http").createServer((_, response) => response.end(JSON.stringify([process.env.A, process.env.B, process.cwd()])))
        .listen(Number(process.env.PORT), "127.0.0.1")`;
    const lines = ['env = { PORT = "{port}", B = "manifest" }', 'output = "body"'].slice(0, 1);
    const { ask } = make(script(text), lines, { env: { A: "worker", B: "worker" } });
    const outcome = await ask(chat("x"));
    // It has no message, so the error shows what came.
    expect("message" in outcome && outcome.message).to.include(
      JSON.stringify(["worker", "manifest", directory.path]),
    );
  });

  it("that dies with several items in its hands charges none of them, and is started again", async () => {
    const { ask, logger } = make(server("--latency", "200"));
    await ask(chat("first"));
    const others = ["a", "b"].map((text) => ask(chat(text, { behave: { kind: "stall" } })));
    const kinds = await Promise.all(
      [...others, ask(chat("x", die))].map(async (ending) => (await ending).kind),
    );
    expect(kinds).to.deep.equal(["crash_shared", "crash_shared", "crash_shared"]);
    expect((await ask(chat("second"))).kind).to.equal("success");
    expect([children.length, await hasEnded(children[0])]).to.deep.equal([2, true]);
    const ended = logger.lines.find(({ level }) => level === "warn");
    expect(ended?.message).to.equal("the server has ended and is started again");
    expect(ended?.fields["reason"]).to.match(/^exit code 139 \(a shell's word for SIGSEGV\): answers at/);
  });

  it("that dies with a single item in its hands charges that", async () => {
    const { ask } = make(server());
    const outcome = await ask(chat("x", die));
    expect(outcome.kind).to.equal("crash");
    expect(outcome)
      .to.have.property("message")
      .that.matches(/^the server died while it answered: exit code 139 /);
    expect((await ask(chat("second"))).kind).to.equal("success");
  });

  it("that is killed is noticed by items that wait for an answer", async () => {
    const { ask } = make(server());
    await ask(chat("first"));
    const ending = ask(chat("x", { behave: { kind: "stall" } }));
    await eventually("the child", () => children[0] !== undefined);
    process.kill(children[0]?.pid ?? 0, "SIGKILL");
    expect((await ending).kind).to.equal("crash");
  });

  it("whose program is missing is broken at once, and charges no item", async () => {
    const { ask, broken } = make(["no-such-program", "--port", "{port}"]);
    expect(await ask(chat("x"))).to.deep.equal({ kind: "preempted" });
    expect(await eventually("the reason", () => broken[0])).to.match(
      /^the server: the program no-such-program: /,
    );
  });

  it("that ends before it is ready is tried three times, and its last words are told", async () => {
    const { ask, broken } = make(script('console.error("no GPU here"); process.exit(7)'));
    expect(await ask(chat("x"))).to.deep.equal({ kind: "preempted" });
    expect([await eventually("the reason", () => broken[0]), children.length]).to.deep.equal([
      "the server: it ended before it was ready: exit code 7: no GPU here",
      3,
    ]);
  });

  it("is broken without the secrets of its headers and its environment in the reason and in the log", async () => {
    const cut = "x".repeat(480);
    const text = `console.error("no " + process.env.API_KEY + " " + process.env.HF_TOKEN + " ${cut} " + process.env.API_KEY); process.exit(7)`;
    const headers = 'headers = { Authorization = "Bearer ${BEARER}" }';
    const env = { BEARER: "sk-very-secret-1", API_KEY: "sk-very-secret-1" };
    const { ask, broken, logger } = make(script(text), [headers, 'env = { HF_TOKEN = "hf-secret-2" }'], {
      env,
    });
    await ask(chat("x"));
    const reason = await eventually("the reason", () => broken[0]);
    expect(reason).to.include("exit code 7: no [redacted] [redacted] xxx");
    expect(`${reason} ${JSON.stringify(logger.lines)}`, "no part of one either").not.to.match(/sk-|hf-/);
  });

  it("that does not become ready in time is broken, and ended", async () => {
    const { ask, broken } = make(server("--load", "60000"), ['ready_timeout = "700ms"']);
    expect(await ask(chat("x"))).to.deep.equal({ kind: "preempted" });
    expect(await eventually("the reason", () => broken[0])).to.match(
      /^the server: it is not ready after 700ms/,
    );
    expect(await hasEnded(children[0])).to.equal(true);
  });

  it("is not started where another one answers", async () => {
    const other = await OpenAiServer.start();
    closing(() => other.close());
    const { ask, broken } = make(server(), [`ready_url = "${other.origin}/health"`]);
    expect(await ask(chat("x"))).to.deep.equal({ kind: "preempted" });
    expect(await eventually("the reason", () => broken[0])).to.equal(
      `the server: something else answers at ${other.origin}/health`,
    );
    expect(children).to.have.length(0);
  });

  it("does not take the time of items while it is being started", async () => {
    const { ask, reports } = make(server("--load", "300"));
    const endings = ["a", "b"].map((text) => ask(chat(text)));
    await Promise.all(endings);
    await ask(chat("c"));
    expect(reports).to.deep.equal(["waiting", "waiting", "executing", "executing"]);
  });

  it("is ready before there are items, when somebody waits for that", async () => {
    const { backend } = make(server("--load", "300"));
    expect(await backend.prepare()).to.equal(undefined);
    const missing = make(["no-such-program"]);
    expect(await missing.backend.prepare()).to.match(/^the server: the program no-such-program: /);
    expect(missing.broken).to.deep.equal([]);
  });

  it("is killed with an item that has to end at once, and started again for the next", async () => {
    const { ask } = make(server());
    await ask(chat("first"));
    const controller = new AbortController();
    const ending = ask(chat("x", { behave: { kind: "stall" } }), controller.signal);
    await settleSockets();
    controller.abort(AT_ONCE);
    expect(await ending).to.deep.equal({ kind: "preempted" });
    expect(isAlive(children[0]?.pid ?? 0)).to.equal(false);
    expect((await ask(chat("second"))).kind).to.equal("success");
    expect(children).to.have.length(2);
  });

  it("goes on when an item that it has is not wanted any more", async () => {
    const { ask } = make(server());
    await ask(chat("first"));
    const controller = new AbortController();
    const ending = ask(chat("x", { behave: { kind: "stall" } }), controller.signal);
    await settleSockets();
    controller.abort();
    expect(await ending).to.deep.equal({ kind: "preempted" });
    expect((await ask(chat("second"))).kind).to.equal("success");
    expect(children).to.have.length(1);
  });

  it("says that it is being started when that takes almost as long as it may, and when it ended why", async () => {
    const { ask, backend } = make(server("--load", "300"));
    expect(backend.trouble(), "it has time").to.equal(undefined);
    await ask(chat("x"));
    expect(backend.trouble()).to.equal(undefined);
    process.kill(children[0]?.pid ?? 0, "SIGKILL");
    expect(
      await eventually("the trouble", () => backend.trouble()?.includes("again") && backend.trouble()),
    ).to.match(/^starting the server again, for \d+ s: killed by SIGKILL/);
    await ask(chat("y"));
    expect(backend.trouble()).to.equal(undefined);
    const late = make(server("--load", "60000"), ['ready_timeout = "800ms"']).backend;
    expect(late.trouble()).to.equal(undefined);
    expect(await eventually("the trouble", () => late.trouble())).to.equal("starting the server, for 0 s");
  });

  it("that ignores SIGTERM is killed after its grace", async () => {
    const text = `
      process.on("SIGTERM", () => undefined);
      require("http").createServer((_, response) => response.end("{}")).listen(Number(process.argv[1]), "127.0.0.1")`;
    const { ask, backend } = make([...script(text), "{port}"], ['kill_grace = "200ms"']);
    await ask(chat("x"));
    await backend.close();
    expect(await hasEnded(children[0])).to.equal(true);
  });

  it("is given up while it is being started, when the backend is closed", async () => {
    const { ask, backend, broken } = make(server("--load", "60000"));
    const ending = ask(chat("x"));
    await eventually("the child", () => children[0] !== undefined);
    await backend.close();
    expect([await ending, await hasEnded(children[0]), broken]).to.deep.equal([
      { kind: "preempted" },
      true,
      [],
    ]);
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
