// `rollout run` on other machines: a real sshd on loopback, where a login begins in a directory of its own and finds `rollout`.
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { killWorkers, workerLines } from "../contract/provider.ts";
import { useSshd } from "../contract/ssh-rig.ts";
import { eventually } from "../support/eventually.ts";
import { withLocalRun } from "../support/local-run.ts";
import type { LocalRunPlace } from "../support/local-run.ts";

const PROGRAM = fileURLToPath(new URL("../../bin/run.js", import.meta.url));
const ITEMS = 24;
const homeIn = (directory: string): string => join(directory, "home");
const login = (directory: string): string =>
  `ForceCommand cd '${homeIn(directory)}' && PATH="$PWD/bin:$PATH" && export PATH && eval "$SSH_ORIGINAL_COMMAND"`;

describe("rollout run on hosts", () => {
  const sshd = useSshd(["a", "b"], {
    client: () => ["Host down", "Port 1", "HostName 127.0.0.1"],
    server: (directory) => [login(directory)],
  });
  let home = "";

  before(() => {
    home = homeIn(sshd().directory);
    mkdirSync(join(home, "bin"), { recursive: true });
    script(join(home, "bin", "rollout"), `exec '${process.execPath}' '${PROGRAM}' "$@"`);
  });
  afterEach(() => killWorkers(home));

  function script(file: string, text: string): void {
    writeFileSync(file, `#!/bin/sh\n${text}\n`);
    chmodSync(file, 0o755);
  }

  /** A run whose `ssh` knows the hosts. */
  const withRun = (use: (place: LocalRunPlace) => Promise<void>): Promise<void> => {
    const bin = join(sshd().directory, "bin");
    mkdirSync(bin, { recursive: true });
    script(join(bin, "ssh"), `exec /usr/bin/ssh -F '${sshd().config}' "$@"`);
    return withLocalRun({ items: ITEMS, env: { PATH: `${bin}:${process.env["PATH"] ?? ""}` } }, use);
  };

  const wordsFor = (place: LocalRunPlace, ...flags: string[]): string[] => {
    const command = ["sh", "-c", `cd '${place.directory}' && exec sh work.sh`];
    return ["run", "in.jsonl", "-o", "out.jsonl", ...flags, "--", ...command];
  };

  function expectNothingThere(): void {
    expect(workerLines(home)).to.deep.equal([]);
    expect(readdirSync(home)).to.deep.equal(["bin"]);
  }

  async function expectAll(place: LocalRunPlace): Promise<void> {
    const items = (await place.results()).map(({ item, ok }) => `${item} ${String(ok)}`);
    expect([items.length, new Set(items).size]).to.deep.equal([ITEMS, ITEMS]);
    const journal = await place.journal();
    expect([journal.length, new Set(journal).size]).to.deep.equal([ITEMS, ITEMS]);
  }

  it("works on them, leaves nothing there when it is interrupted, and goes on where it was", async () => {
    await withRun(async (place) => {
      place.hold(4);
      const words = wordsFor(place, "--host", "a", "--host", "b=2");
      const killed = place.launch(words);
      await place.untilResults(4);
      await eventually("a worker on each", () => workerLines(home).length === 2);
      const workers = workerLines(home);
      expect(workers.some((line) => line.includes("--slots 2"))).to.equal(true);
      await killed.kill();

      // Its workers come back to the next one.
      place.hold(8);
      const first = place.launch(words);
      await place.untilResults(8);
      expect(workerLines(home)).to.have.members(workers);
      first.send("SIGINT");
      await first.until("its answer", () => first.stderr.find((line) => line.includes("stopping")));
      place.letGo();
      expect((await first.ended).code, first.describe()).to.equal(4);
      expectNothingThere();

      const { stderr } = await place.wordsTo(0, wordsFor(place, "--host", "a", "--host", "down"));
      expect(stderr).to.match(/nothing can be started on down: .*refused/i);
      await expectAll(place);
      expectNothingThere();
    });
  });

  it("names what is in the way where none of them can be used, and leaves no run behind", async () => {
    await withRun(async (place) => {
      const { stderr } = await place.wordsTo(3, wordsFor(place, "--host", "down"));
      expect(stderr).to.match(/fleet hosts cannot start workers: down: .*refused/i);
      expect(existsSync(place.file("out.jsonl.rollout"))).to.equal(false);
    });
  });

  it("takes a fleet of the configuration", async () => {
    await withRun(async (place) => {
      const fleet = [
        ...["[[fleet]]", 'name = "lab"', 'provider = "ssh"', 'hosts = ["a"]', "slots = 3"],
        ...['dir = "there"', 'finish_within = "0s"', ""],
      ];
      writeFileSync(place.file("rollout.toml"), fleet.join("\n"));
      await place.wordsTo(0, wordsFor(place, "--fleet", "lab"));
      await expectAll(place);
      expect(readdirSync(join(home, "there"))).to.deep.equal([]);
    });
  });
});
