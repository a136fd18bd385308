import { expect } from "chai";
import type { Backend } from "../../../../src/worker/backends/backend.ts";
import { Plugins } from "../../../../src/worker/backends/plugins.ts";

describe("plugins", () => {
  let closed: string[];
  let failures: unknown[];

  beforeEach(() => {
    closed = [];
    failures = [];
  });

  const backend = (name: string, close?: () => Promise<void>): Backend => ({
    execute: () => Promise.resolve({ kind: "preempted" }),
    close: () => {
      closed.push(name);
      return close?.() ?? Promise.resolve();
    },
  });
  const make = (...names: string[]): Plugins =>
    new Plugins(
      names.map((name) => ({ name, version: "1", backend: backend(`${name}@1`) })),
      (error) => void failures.push(error),
    );
  const second = (name: string): { name: string; version: string; backend: Backend } => ({
    name,
    version: "2",
    backend: backend(`${name}@2`),
  });

  it("are taken by name, and without one the first is", () => {
    const plugins = make("infer", "judge");
    expect(plugins.take("judge")?.backend).not.to.equal(plugins.take("infer")?.backend);
    expect(plugins.take("")?.backend).to.equal(plugins.take("infer")?.backend);
    expect(plugins.take("other")).to.equal(undefined);
    expect(plugins.list()).to.deep.equal([
      { name: "infer", version: "1", stateVersion: 0 },
      { name: "judge", version: "1", stateVersion: 0 },
    ]);
  });

  it("tell the trouble of each, by name when there are several, in as many bytes as a beat has", () => {
    const withTrouble = (...all: readonly (readonly [name: string, words: string | undefined])[]): Plugins =>
      new Plugins(
        all.map(([name, words]) => ({
          ...{ name, version: "1", backend: { ...backend(name), trouble: () => words } },
        })),
        () => undefined,
      );
    expect(make("infer").trouble()).to.equal("");
    expect(withTrouble(["infer", undefined]).trouble()).to.equal("");
    expect(withTrouble(["infer", "loading, for 12 s"]).trouble()).to.equal("loading, for 12 s");
    const several = withTrouble(["infer", "loading"], ["judge", undefined], ["ask", "waiting"]);
    expect(several.trouble()).to.equal("infer: loading; ask: waiting");
    const long = withTrouble(["infer", "😀".repeat(100)]).trouble();
    expect(long).to.equal(`${"😀".repeat(63)}…`);
    expect(Buffer.byteLength(long)).to.equal(255);
  });

  it("that are replaced stay with who has them, and are closed after the last of these", async () => {
    const plugins = make("infer", "judge");
    const [one, other] = [plugins.take("infer"), plugins.take("infer")];
    plugins.replace(second("infer"));
    expect(plugins.take("infer")?.version).to.equal("2");
    expect(one?.version).to.equal("1");
    one?.release();
    expect(closed).to.deep.equal([]);
    other?.release();
    expect(closed).to.deep.equal(["infer@1"]);
    expect(plugins.list()[0]).to.deep.equal({ name: "infer", version: "2", stateVersion: 0 });
    await plugins.close();
    expect(closed).to.deep.equal(["infer@1", "infer@2", "judge@1"]);
  });

  it("that are replaced and nobody has are closed at once", () => {
    make("infer").replace(second("infer"));
    expect(closed).to.deep.equal(["infer@1"]);
  });

  it("are all closed in the end, once, those that are still held and those that were replaced too", async () => {
    const plugins = make("infer");
    const held = plugins.take("infer");
    plugins.replace(second("infer"));
    await Promise.all([plugins.close(), plugins.close()]);
    expect(closed).to.deep.equal(["infer@2", "infer@1"]);
    held?.release();
    expect([closed.length, plugins.take("infer")]).to.deep.equal([2, undefined]);
  });

  it("are waited for until they are closed, and one that fails to is said", async () => {
    const closing = Promise.withResolvers<never>();
    const plugins = new Plugins(
      [{ name: "infer", version: "1", backend: backend("infer", () => closing.promise) }],
      (error) => void failures.push(error),
    );
    let isOver = false;
    const over = plugins.close().then(() => (isOver = true));
    await Promise.resolve();
    expect(isOver).to.equal(false);
    closing.reject(new Error("stuck"));
    await over;
    expect(failures.map(String)).to.deep.equal(["Error: stuck"]);
  });
});
