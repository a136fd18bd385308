import { expect } from "chai";
import type { Backend } from "../../../../src/worker/backends/backend.ts";
import { Plugins } from "../../../../src/worker/backends/plugins.ts";
import { settle } from "../../../support/settle.ts";
import type { Plugin, TakenPlugin } from "../../../../src/worker/backends/versions.ts";

describe("plugins", () => {
  let opened: string[];
  let closed: string[];
  let failures: unknown[];

  beforeEach(() => {
    opened = [];
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
      names.map((name) => versionOf(name, "1")),
      (error) => void failures.push(error),
    );
  const versionOf = (name: string, version: string): Plugin => ({
    name,
    version,
    open: () => {
      opened.push(`${name}@${version}`);
      return backend(`${name}@${version}`);
    },
  });
  const second = (name: string): Plugin => versionOf(name, "2");
  function taken(plugins: Plugins, name: string, version = ""): TakenPlugin {
    const found = plugins.take(name, version);
    if (typeof found !== "object") throw new Error(`${name}@${version} cannot be taken: ${found}`);
    return found;
  }

  it("are taken by name, and without one the first is", () => {
    const plugins = make("infer", "judge");
    expect(taken(plugins, "judge").backend).not.to.equal(taken(plugins, "infer").backend);
    expect(taken(plugins, "").backend).to.equal(taken(plugins, "infer").backend);
    expect(plugins.take("other")).to.equal(undefined);
    expect(plugins.list()).to.deep.equal([
      { name: "infer", version: "1", stateVersion: 0, taskDigest: undefined },
      { name: "judge", version: "1", stateVersion: 0, taskDigest: undefined },
    ]);
  });

  it("tell the trouble of each, by name when there are several, in as many bytes as a beat has", () => {
    const withTrouble = (...all: readonly (readonly [name: string, words: string | undefined])[]): Plugins =>
      new Plugins(
        all.map(([name, words]) => ({
          ...{ name, version: "1", open: () => ({ ...backend(name), trouble: () => words }) },
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
    const [one, other] = [taken(plugins, "infer"), taken(plugins, "infer")];
    plugins.replace("1", second("infer"));
    expect(taken(plugins, "infer").version).to.equal("2");
    expect(one.version).to.equal("1");
    one.release();
    expect(closed).to.deep.equal([]);
    other.release();
    expect(closed).to.deep.equal(["infer@1"]);
    expect(plugins.list()[0]).to.deep.equal({
      name: "infer",
      version: "2",
      stateVersion: 0,
      taskDigest: undefined,
    });
    await plugins.close();
    expect(closed).to.deep.equal(["infer@1", "infer@2", "judge@1"]);
  });

  it("that are replaced and nobody has are closed at once", () => {
    make("infer").replace("1", second("infer"));
    expect(closed).to.deep.equal(["infer@1"]);
  });

  it("are all closed in the end, once, those that are still held and those that were replaced too", async () => {
    const plugins = make("infer");
    const held = taken(plugins, "infer");
    plugins.replace("1", second("infer"));
    await Promise.all([plugins.close(), plugins.close()]);
    expect(closed).to.deep.equal(["infer@2", "infer@1"]);
    held.release();
    expect([closed.length, plugins.take("infer")]).to.deep.equal([2, undefined]);
  });

  it("are waited for until they are closed, and one that fails to is said", async () => {
    const closing = Promise.withResolvers<never>();
    const plugins = new Plugins(
      [{ name: "infer", version: "1", open: () => backend("infer", () => closing.promise) }],
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

  describe("in several versions", () => {
    const several = (loadedVersions: number, ...versions: string[]): Plugins =>
      new Plugins(
        versions.map((version) => versionOf("infer", version)),
        (error) => void failures.push(error),
        { loadedVersions },
      );

    it("have the first of a name as the worker's own, which is open from the start; others open at their first item", () => {
      const plugins = several(2, "1", "2");
      expect(opened).to.deep.equal(["infer@1"]);
      expect(taken(plugins, "infer").version).to.equal("1");
      expect(taken(plugins, "infer", "1").version).to.equal("1");
      expect(opened).to.deep.equal(["infer@1"]);
      expect([taken(plugins, "infer", "2").version, taken(plugins, "infer", "2").version]).to.deep.equal([
        "2",
        "2",
      ]);
      expect(opened).to.deep.equal(["infer@1", "infer@2"]);
      expect(plugins.take("infer", "3")).to.equal(undefined);
      expect(plugins.list().map(({ version }) => version)).to.deep.equal(["1", "2"]);
    });

    it("are told of as versions only where there are two", () => {
      expect([several(1, "1").loadedVersions, several(1, "1", "2").loadedVersions]).to.deep.equal([
        undefined,
        1,
      ]);
      expect(make("infer", "judge").loadedVersions).to.equal(undefined);
    });

    it("wait for one that is held, then for its end, and open when that is over and not before", async () => {
      const ending = Promise.withResolvers<undefined>();
      const close = (): Promise<void> => ending.promise;
      const first = { ...versionOf("infer", "1"), open: () => backend("infer@1", close) };
      const plugins = new Plugins([first, versionOf("infer", "2")], () => undefined, { loadedVersions: 1 });
      let hasRoom = 0;
      plugins.whenRoom(() => hasRoom++);
      const held = taken(plugins, "infer");
      expect(plugins.take("infer", "2")).to.equal("held");
      expect(closed).to.deep.equal([]);
      held.release();
      expect([plugins.take("infer", "2"), plugins.take("infer", "2")]).to.deep.equal(["closing", "closing"]);
      expect(plugins.take("infer"), "nothing is opened meanwhile").to.equal("closing");
      expect([closed, opened, hasRoom]).to.deep.equal([["infer@1"], [], 0]);
      ending.resolve(undefined);
      await settle();
      expect(hasRoom).to.equal(1);
      expect([taken(plugins, "infer", "2").version, opened]).to.deep.equal(["2", ["infer@2"]]);
    });

    it("make room by the one that was taken longest ago, and nothing is left open in the end", async () => {
      const plugins = several(2, "1", "2", "3");
      for (const version of ["1", "2", "1"]) taken(plugins, "infer", version).release();
      expect(plugins.take("infer", "3")).to.equal("closing");
      expect(closed).to.deep.equal(["infer@2"]);
      await settle();
      taken(plugins, "infer", "3").release();
      await plugins.close();
      expect(closed).to.deep.equal(["infer@2", "infer@1", "infer@3"]);
    });

    it("take one more, but no plugin that is not here, none twice, and no more than a beat has", () => {
      const plugins = several(2, "1");
      expect(plugins.add(versionOf("infer", "2"))).to.equal(undefined);
      expect(plugins.list().map(({ version }) => version)).to.deep.equal(["1", "2"]);
      expect(plugins.add(versionOf("infer", "2"))).to.equal("this worker has a version 2 of infer already");
      expect(plugins.add(versionOf("judge", "2"))).to.contain("no plugin judge");
      for (let version = 3; version <= 64; version++) plugins.add(versionOf("infer", String(version)));
      expect(plugins.add(versionOf("infer", "65"))).to.equal("a worker has 64 versions of plugins at most");
    });

    it("lose one that is broken, and end the worker only by its own", () => {
      const plugins = several(2, "1", "2");
      const held = taken(plugins, "infer", "2");
      expect(plugins.sayBroken("infer", "2", "no model")).to.equal(false);
      expect([plugins.take("infer", "2"), closed]).to.deep.equal([undefined, []]);
      held.release();
      expect(closed).to.deep.equal(["infer@2"]);
      expect(plugins.trouble()).to.equal("infer@2 is broken: no model");
      expect(plugins.sayBroken("infer", "2", "it said so twice")).to.equal(false);
      expect(plugins.broken()).to.equal("");
      expect(plugins.add(versionOf("infer", "2")), "it was put right").to.equal(undefined);
      expect(plugins.trouble()).to.equal("");
      expect(plugins.sayBroken("infer", "1", "no model")).to.equal(true);
      expect(plugins.broken()).to.equal("the backend of infer is broken: no model");
    });
  });
});
