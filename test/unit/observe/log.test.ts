import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { failure } from "../../../src/base/errors.ts";
import { createLateLog } from "../../../src/observe/late-log.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import { createLog } from "../../../src/observe/winston-log.ts";
import type { LogOptions, LogSink, Logger } from "../../../src/observe/log.ts";
import { HeldStream } from "./held-stream.ts";

async function logged(
  write: (log: Logger) => void,
  options: Partial<LogOptions> = {},
  open: (options: LogOptions) => LogSink = createLog,
): Promise<string> {
  const stream = new PassThrough();
  const output = text(stream);
  const sink = open({
    stream,
    clock: { ...systemClock, wallMs: () => 43_384_123 },
    level: "info",
    format: "human",
    colour: false,
    limitBytes: 100_000,
    ...options,
  });
  write(sink.logger);
  await sink.close();
  stream.end();
  return output;
}

describe("the log", () => {
  it("is time, level, message and fields for a person", async () => {
    const output = await logged((log) => {
      log.info("worker registered", { worker: "W1", slots: 4, plugins: ["a", "b c"] });
      log.warn("late");
    });
    expect(output).to.equal(
      '12:03:04.123Z info  worker registered worker=W1 slots=4 plugins="[\\"a\\",\\"b c\\"]"\n' +
        "12:03:04.123Z warn  late\n",
    );
  });

  it("is one object a line for a program, whose head no field replaces", async () => {
    const output = await logged((log) => log.error("no", { level: "debug", message: "yes", a: 1 }), {
      format: "json",
    });
    expect(output).to.equal('{"ts":"1970-01-01T12:03:04.123Z","level":"error","message":"no","a":1}\n');
  });

  it("is coloured only when asked to be", async () => {
    expect(await logged((log) => log.error("x"), { colour: true })).to.contain("\u001b[31merror\u001b[0m");
    expect(await logged((log) => log.error("x"))).to.not.contain("\u001b");
  });

  it("leaves out what is below its level", async () => {
    const write = (log: Logger): void => {
      log.debug("1");
      log.info("2");
      log.warn("3");
      log.error("4");
    };
    const messages = (output: string): string => output.replace(/^\S+ \w+ +/gm, "").replaceAll("\n", "");
    expect(messages(await logged(write, { level: "debug" }))).to.equal("1234");
    expect(messages(await logged(write, { level: "warn" }))).to.equal("34");
    expect(messages(await logged(write, { level: "error" }))).to.equal("4");
  });

  it("carries the fields of a child on each of its lines", async () => {
    const output = await logged((log) =>
      log.child({ worker: "W" }).child({ epoch: 3 }).info("x", { load: 0.5 }),
    );
    expect(output).to.contain("info  x worker=W epoch=3 load=0.5\n");
  });

  it("escapes line breaks, so that an entry is one line", async () => {
    const output = await logged((log) => log.info("a\nb\u001b[2J", { name: "c\r\nd" }));
    expect(output).to.equal('12:03:04.123Z info  a\\nb\\u001b[2J name="c\\\\r\\\\nd"\n');
  });

  it("shows an error as its code and message, and its stack only at debug", async () => {
    const err = failure("listen_failed", {
      address: "a:1",
      reason: "EADDRINUSE",
      setting: "transport.listen_addr",
    });
    const write = (log: Logger): void => log.error("cannot start", { err });
    const short = await logged(write, { format: "json" });
    expect(JSON.parse(short)).to.have.property("err", "listen_failed: cannot listen on a:1: EADDRINUSE");
    const long = await logged(write, { format: "json", level: "debug" });
    expect(JSON.parse(long)).to.have.nested.property("err.stack").that.contains("log.test.ts");
    expect(long.split("\n")).to.have.length(2);
  });

  it("loses no line when it is closed at once", async () => {
    const output = await logged(
      (log) => {
        for (let at = 0; at < 5_000; at++) log.info(`line ${at}`);
      },
      { limitBytes: 10_000_000 },
    );
    expect(output.trimEnd().split("\n")).to.have.length(5_000);
  });

  it("holds no more than its limit for a reader that is stuck", async () => {
    const stream = new HeldStream();
    const sink = createLog({
      stream,
      clock: systemClock,
      level: "info",
      format: "human",
      colour: false,
      limitBytes: 1_000,
    });
    for (let at = 0; at < 1_000; at++) sink.logger.info("0123456789012345678901234567890123456789");
    const closing = sink.close();
    const release = async (): Promise<void> => {
      for (let at = 0; at < 5; at++) {
        await new Promise<void>((resolve) => systemClock.nextTurn(resolve));
        stream.release();
      }
    };
    await Promise.all([closing, release()]);
    expect(stream.text.length).to.be.below(1_200);
    expect(stream.text).to.match(/log lines were dropped: nobody read them count=9\d\d\n$/);
  });

  it("is the same where its first line opens it, and nothing where there is none", async () => {
    const write = (log: Logger): void => {
      log.info("below its level");
      for (let at = 0; at < 100; at++) log.child({ at }).warn("x");
    };
    const options = { level: "warn" } as const;
    expect(await logged(write, options, createLateLog)).to.equal(await logged(write, options));
    expect(await logged((log) => log.info("x"), options, createLateLog)).to.equal("");
  });

  it("can be nothing at all", () => {
    expect(() => silentLogger.child({ a: 1 }).error("x")).to.not.throw();
  });
});

describe("secrets in the log", () => {
  const CANARY = "c4n4ry";
  const keyPem = `-----BEGIN EC PRIVATE KEY-----\n${CANARY}\n-----END EC PRIVATE KEY-----\n`;
  const cases: [string, string, Record<string, unknown>][] = [
    ["a private key in a message", `read ${keyPem}`, {}],
    ["a private key in a field", "x", { file: keyPem }],
    ["half a private key", "x", { file: keyPem.slice(0, 45) }],
    ["a private key in an error", "x", { err: new Error(`bad ${keyPem}`) }],
    ["a private key in a cause's stack", "x", { err: new Error("y", { cause: new Error(keyPem) }) }],
    ["a password in a URL", `postgres://me:${CANARY}@host/db`, {}],
    ["an authorization header", "x", { headers: { authorization: `Bearer ${CANARY}` } }],
    ["an authorization header as text", `Authorization: Bearer ${CANARY}`, {}],
    ["a bearer token", `got Bearer ${CANARY}c4n4ry`, {}],
    [
      "a field named for it",
      "x",
      { password: CANARY, apiKey: CANARY, client_secret: CANARY, keyPem: CANARY },
    ],
    ["bytes", "x", { key: Buffer.from(CANARY) }],
    [
      "an object of a class",
      "x",
      {
        socket: new (class Socket {
          secret = CANARY;
          data = CANARY;
        })(),
      },
    ],
    ["a function", "x", { run: () => CANARY }],
    ["something deep", "x", { a: { b: { c: { d: { e: CANARY } } } } }],
  ];
  for (const format of ["human", "json"] as const) {
    for (const [name, message, fields] of cases) {
      it(`do not show: ${name}, in ${format} lines`, async () => {
        const output = await logged((log) => log.error(message, fields), { format, level: "debug" });
        expect(output).to.not.contain(CANARY);
        expect(output.trimEnd().split("\n")).to.have.length(1);
      });
    }
  }
});
