// Versions that come into a directory while a worker runs.
import { expect } from "chai";
import { chmod, mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { PluginDirectory } from "../../../src/compose/plugin-directory.ts";
import type { Manifest } from "../../../src/config/manifest.ts";
import { loadManifest } from "../../../src/config/manifest.ts";
import { taskOf } from "../../../src/config/task.ts";
import { Plugins } from "../../../src/worker/backends/plugins.ts";
import type { Plugin } from "../../../src/worker/backends/versions.ts";
import { useClosers } from "../../support/closers.ts";
import { eventually } from "../../support/eventually.ts";
import { HeldBackend } from "../../support/held-backend.ts";
import { RecordingEmitter } from "../../support/recording-emitter.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const LOOK_MS = 500;

describe("a directory of plugins", () => {
  const onClose = useClosers();
  const directory = useTemporaryDirectory();
  let clock: VirtualClock;
  let log: RecordingLogger;
  let plugins: Plugins;
  /** Versions that were opened, in order. */
  let opened: string[];
  let made: Manifest[];

  function make(manifest: Manifest): Plugin {
    made.push(manifest);
    const { name, version } = manifest;
    const open = (): HeldBackend => {
      opened.push(version);
      return new HeldBackend();
    };
    return { name, version, taskDigest: taskOf(manifest).digest, open };
  }

  /** Another module is another task. */
  async function write(file: string, version: string, module = `v${version}.js`, name = "m"): Promise<void> {
    await writeFile(
      directory.file(file),
      `name = "${name}"\nversion = "${version}"\nbackend = "module"\n[module]\nmodule = "${module}"\n`,
    );
  }

  const isWaiting = (): Promise<boolean> => eventually("it waits for its next look", () => clock.armed > 0);
  async function look(times = 2): Promise<void> {
    for (let time = 0; time < times; time++) {
      await clock.advance(LOOK_MS);
      await isWaiting();
    }
  }

  async function open(): Promise<PluginDirectory> {
    const watched = await PluginDirectory.open({
      ...{ directory: directory.file("plugins"), plugins, make, clock, log, events: new RecordingEmitter() },
      open: () => expect.fail("nothing is opened before its first item"),
    });
    onClose(() => watched.stop());
    await isWaiting();
    return watched;
  }

  const versions = (): string[] => plugins.list().map(({ version }) => version);
  const warnings = (): string[] =>
    log.lines.filter(({ level }) => level === "warn").map(({ message }) => message);

  beforeEach(async () => {
    clock = new VirtualClock();
    log = new RecordingLogger();
    [opened, made] = [[], []];
    await write("v1.toml", "1");
    plugins = new Plugins([make(await loadManifest(directory.file("v1.toml")))], () => undefined);
    await mkdir(directory.file("plugins"));
    await mkdir(directory.file("elsewhere"));
  });

  it("is read at the start, and a new file in it when it has not changed for one look", async () => {
    await write("plugins/v2.toml", "2");
    await open();
    expect(versions(), "its first beat names it").to.deep.equal(["1", "2"]);
    await write("plugins/v3.toml", "3");
    await look(1);
    expect(versions(), "it may still be written").to.deep.equal(["1", "2"]);
    await look(1);
    expect(versions()).to.deep.equal(["1", "2", "3"]);
    expect([opened, warnings()]).to.deep.equal([["1"], []]);
  });

  it("may be missing", async () => {
    await rm(directory.file("plugins"), { recursive: true });
    await open();
    await look();
    await mkdir(directory.file("plugins"));
    await write("plugins/v2.toml", "2");
    await look();
    expect([versions(), warnings()]).to.deep.equal([["1", "2"], []]);
  });

  it("takes a link for the file that it leads to: paths in it are that file's", async () => {
    await write("elsewhere/v2.toml", "2");
    await symlink("../elsewhere/v2.toml", directory.file("plugins/link.toml"));
    await open();
    expect(versions()).to.deep.equal(["1", "2"]);
    expect(made[1]?.directory).to.equal(directory.file("elsewhere"));
    // The file changes behind the link.
    await write("elsewhere/v2.toml", "2.1", "v2.js");
    await look();
    expect([versions(), warnings()]).to.deep.equal([["1", "2.1"], []]);
  });

  it("is refused where others may write to a file in it, directly or behind a link", async () => {
    await write("plugins/v2.toml", "2");
    await write("elsewhere/v3.toml", "3");
    await chmod(directory.file("plugins/v2.toml"), 0o666);
    await chmod(directory.file("elsewhere/v3.toml"), 0o666);
    await symlink("../elsewhere/v3.toml", directory.file("plugins/v3.toml"));
    await open();
    await look(3);
    expect(versions()).to.deep.equal(["1"]);
    expect(warnings()).to.have.length(2);
    expect(warnings()[0]).to.contain("plugins/v2.toml").and.contain("write");
    expect(warnings()[1]).to.contain("plugins/v3.toml").and.contain("write");
    await chmod(directory.file("plugins"), 0o777);
    await write("plugins/v4.toml", "4");
    await look(3);
    expect(versions()).to.deep.equal(["1"]);
    expect(warnings()[2]).to.contain("worker.plugin_dir");
  });

  it("warns of a link that leads nowhere, once, and takes it up when it leads somewhere", async () => {
    await symlink("../elsewhere/v2.toml", directory.file("plugins/v2.toml"));
    await open();
    await look(3);
    expect(warnings()).to.have.length(1);
    expect(warnings()[0]).to.contain("plugins/v2.toml: ").and.contain("does not exist");
    await write("elsewhere/v2.toml", "2");
    await look();
    expect([versions(), warnings().length]).to.deep.equal([["1", "2"], 1]);
  });

  it("warns of a manifest that is no further version, and ends no worker", async () => {
    await writeFile(directory.file("plugins/bad.toml"), "name =");
    await writeFile(directory.file("plugins/notes.txt"), "not looked at");
    await write("plugins/other.toml", "1", "v1.js", "judge");
    await write("plugins/same.toml", "1", "another.js");
    await open();
    await look(3);
    expect(versions()).to.deep.equal(["1"]);
    const [bad, other, same] = warnings();
    expect(bad).to.contain("plugins/bad.toml: ").and.contain("bad.toml:1");
    expect(other).to.contain("other.toml: this worker has no plugin judge that it could be a version of");
    expect(same).to.contain("same.toml: this worker has another task as version 1 of m already");
    expect(warnings()).to.have.length(3);
  });

  it("says nothing of a version that is loaded already with the same task", async () => {
    await symlink("../v1.toml", directory.file("plugins/v1.toml"));
    await open();
    await look(3);
    expect([versions(), warnings()]).to.deep.equal([["1"], []]);
  });

  it("keeps a version whose file is gone: items may name it", async () => {
    await write("plugins/v2.toml", "2");
    await open();
    await rm(directory.file("plugins/v2.toml"));
    await look(3);
    expect(versions()).to.deep.equal(["1", "2"]);
  });

  it("has stopped looking when it is stopped", async () => {
    const watched = await open();
    await watched.stop();
    expect(clock.armed).to.equal(0);
  });
});
