import { expect } from "chai";
import { rm, utimes, writeFile } from "node:fs/promises";
import { HotReload } from "../../../src/compose/hot-reload.ts";
import type { OpenedPlugin } from "../../../src/compose/plugins.ts";
import type { Manifest } from "../../../src/config/manifest.ts";
import { loadManifest } from "../../../src/config/manifest.ts";
import { taskOf } from "../../../src/config/task.ts";
import { Plugins } from "../../../src/worker/backends/plugins.ts";
import type { PluginsOptions } from "../../../src/worker/backends/plugins.ts";
import type { Plugin, TakenPlugin } from "../../../src/worker/backends/versions.ts";
import { useClosers } from "../../support/closers.ts";
import { eventually } from "../../support/eventually.ts";
import { RecordingEmitter } from "../../support/recording-emitter.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const LOOK_MS = 500;

/** A backend that only knows whether it is closed. */
class Closable {
  isClosed = false;

  execute(): Promise<{ readonly kind: "preempted" }> {
    return Promise.resolve({ kind: "preempted" });
  }

  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }
}

describe("hot reload", () => {
  const onClose = useClosers();
  const directory = useTemporaryDirectory();
  let clock: VirtualClock;
  let events: RecordingEmitter;
  let log: RecordingLogger;
  let plugins: Plugins;
  /** In the order in which they were opened; the first is the one that the worker began with. */
  let backends: Closable[];
  let obstacle: string | undefined;

  function open(manifest: Manifest): OpenedPlugin {
    const { name, version } = manifest;
    const backend = new Closable();
    backends.push(backend);
    const taskDigest = taskOf(manifest).digest;
    const plugin = { name, version, taskDigest, open: () => backend };
    return { plugin, backend, obstacle: Promise.resolve(obstacle) };
  }

  /** Opened when its first item comes. */
  function make(manifest: Manifest): Plugin {
    const { name, version } = manifest;
    const taskDigest = taskOf(manifest).digest;
    return { name, version, taskDigest, open: () => open(manifest).backend };
  }

  function take(version = ""): TakenPlugin {
    const taken = plugins.take("m", version);
    if (typeof taken !== "object") throw new Error(`it cannot be taken: ${taken}`);
    return taken;
  }

  async function write(version: string, table = `[module]\nmodule = "m.js"\n`, more = ""): Promise<void> {
    const [, backend = ""] = /\[(\w+)\]/.exec(table) ?? [];
    const text = `name = "m"\nversion = "${version}"\nbackend = "${backend}"\n${more}${table}`;
    await writeFile(directory.file("m.toml"), text);
  }

  const isWaiting = (): Promise<boolean> => eventually("it waits for its next look", () => clock.armed > 0);

  async function look(times = 1): Promise<void> {
    for (let time = 0; time < times; time++) {
      await clock.advance(LOOK_MS);
      await isWaiting();
    }
  }

  async function start(options: PluginsOptions = {}): Promise<void> {
    const manifest = await loadManifest(directory.file("m.toml"));
    plugins = new Plugins([open(manifest).plugin], () => undefined, options);
    const reload = HotReload.start({ manifest, plugins, make, open, clock, events, log });
    onClose(() => reload.stop());
    await isWaiting();
  }

  const versions = (): string[] => plugins.list().map(({ version }) => version);
  const warnings = (): string[] =>
    log.lines.filter(({ level }) => level === "warn").map(({ message }) => message);

  beforeEach(async () => {
    clock = new VirtualClock();
    events = new RecordingEmitter();
    log = new RecordingLogger();
    backends = [];
    obstacle = undefined;
    await write("1");
    await writeFile(directory.file("m.js"), "export default () => 1;");
  });

  it("takes up a changed manifest when it has not changed for one look", async () => {
    await start();
    await write("2");
    await look();
    expect(versions(), "it may still be written").to.deep.equal(["1"]);
    await look();
    expect(versions()).to.deep.equal(["2"]);
    expect(events.of("plugin_reloaded")).to.deep.equal([
      { plugin: "m", version: "2", previous_version: "1" },
    ]);
  });

  it("closes the old version when its last item has ended, and not sooner", async () => {
    await start();
    const taken = take();
    await write("2");
    await look(2);
    expect([take().version, backends[0]?.isClosed]).to.deep.equal(["2", false]);
    taken.release();
    expect(backends.map(({ isClosed }) => isClosed)).to.deep.equal([true, false]);
  });

  it("takes up a changed file that the manifest names, and keeps the manifest's version", async () => {
    await start();
    await writeFile(directory.file("m.js"), "export default () => 2;");
    await look(2);
    expect([backends.length, versions()]).to.deep.equal([2, ["1"]]);
  });

  it("reloads nothing when files are touched but have the same content", async () => {
    await start();
    await utimes(directory.file("m.js"), 1, 1);
    await write("1");
    await look(3);
    expect([backends.length, events.events]).to.deep.equal([1, []]);
  });

  it("watches the files of the new manifest from then on", async () => {
    await write("1", `[command]\ncommand = ["sh", "a.sh"]\n`);
    await writeFile(directory.file("a.sh"), "echo a");
    await start();
    await writeFile(directory.file("a.sh"), "echo b");
    await look(2);
    await writeFile(directory.file("a.sh"), "echo c");
    await look(2);
    expect(backends.length).to.equal(3);
  });

  const REFUSED: readonly [what: string, change: () => Promise<void>, words: string][] = [
    ["is not TOML", () => writeFile(directory.file("m.toml"), "name m"), "m.toml:1"],
    ["is gone", () => rm(directory.file("m.toml")), "it does not exist"],
    ["says what is not allowed", () => write("2", undefined, `item_timeout = "soon"\n`), "item_timeout"],
    [
      "is of another plugin",
      () => writeFile(directory.file("m.toml"), `name = "n"\nversion = "2"\nbackend = "mock"\n`),
      "a plugin n now",
    ],
    [
      "names another file under the same version",
      () => write("1", `[module]\nmodule = "n.js"\n`),
      "another task needs a run of its own, or a version of its own: it was m (module): m.js",
    ],
    [
      "has other parameters under the same version",
      () => write("1", `[module]\nmodule = "m.js"\nparameters = { a = 1 }\n`),
      "another task",
    ],
    [
      "has another backend under the same version",
      () => write("1", `[machine]\nmodule = "m.js"\n`),
      "another task",
    ],
  ];
  for (const [what, change, words] of REFUSED) {
    it(`keeps the old version when the manifest ${what}, and warns once`, async () => {
      await start();
      await change();
      await look(4);
      expect([versions(), backends.map(({ isClosed }) => isClosed)]).to.deep.equal([["1"], [false]]);
      expect(warnings()).to.have.length(1);
      expect(warnings()[0]).to.include("plugin m stays at version 1: ").and.include(words);
    });
  }

  it("keeps the old version when the new one cannot be executed, and closes the new one", async () => {
    await start();
    obstacle = "m.js: no model";
    await write("2");
    await look(4);
    expect([versions(), backends.map(({ isClosed }) => isClosed)]).to.deep.equal([["1"], [false, true]]);
    expect(warnings()).to.deep.equal(["plugin m stays at version 1: m.js: no model"]);
  });

  it("takes up a manifest that was corrected after it was refused", async () => {
    await start();
    await write("2", undefined, "what = 1\n");
    await look(2);
    await write("3");
    await look(2);
    expect(versions()).to.deep.equal(["3"]);
  });

  it("loads another task under another version beside the old one, when its first item comes", async () => {
    await writeFile(directory.file("n.js"), "export default () => 2;");
    await start();
    await write("2", `[module]\nmodule = "n.js"\n`);
    await look(2);
    expect([versions(), backends.length, warnings()]).to.deep.equal([["1", "2"], 1, []]);
    expect([take().version, take("2").version, backends.length]).to.deep.equal(["1", "2", 2]);
    expect(events.of("plugin_reloaded")).to.deep.equal([]);
    // From then on the file is of that version.
    await write("2.1", `[module]\nmodule = "n.js"\n`);
    await look(2);
    expect(versions()).to.deep.equal(["1", "2.1"]);
    await write("1", `[module]\nmodule = "n.js"\n`);
    await look(2);
    expect([versions(), warnings()]).to.deep.equal([
      ["1", "2.1"],
      ["plugin m stays at version 2.1: this worker has a version 1 of m already"],
    ]);
  });

  it("opens no second backend where one is loaded at a time: the new one is tried by its first item", async () => {
    await start({ loadedVersions: 1 });
    obstacle = "nobody asks";
    await write("2");
    await look(2);
    expect([versions(), backends.length]).to.deep.equal([["2"], 1]);
    await eventually("the old one is closed", () => plugins.take("m") !== "closing");
    expect(backends.map(({ isClosed }) => isClosed)).to.deep.equal([true, false]);
  });

  it("has stopped looking when it is stopped", async () => {
    const manifest = await loadManifest(directory.file("m.toml"));
    plugins = new Plugins([open(manifest).plugin], () => undefined);
    const reload = HotReload.start({ manifest, plugins, make, open, clock, events, log });
    await isWaiting();
    await reload.stop();
    expect(clock.armed).to.equal(0);
  });
});
