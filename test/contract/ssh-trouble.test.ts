// Hosts by ssh when something is in the way, against a real sshd on loopback.
import { expect } from "chai";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Launched } from "../../src/fleet/provider.ts";
import { answerIn, scriptOf } from "../../src/fleet/ssh/host-script.ts";
import type { HostTask } from "../../src/fleet/ssh/host-script.ts";
import { eventually } from "../support/eventually.ts";
import { startDeafListener } from "../support/listeners.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";
import { IDLE_WORKER, killWorkers, LABELS, launchOf, workerLines } from "./provider.ts";
import { HostRig, LOGINS_AT_ONCE, useSshd } from "./ssh-rig.ts";

const IDS = [
  "01JZ8Q6T0C5V9W3R7X2Y4B6D90",
  "01JZ8Q6T0C5V9W3R7X2Y4B6D91",
  "01JZ8Q6T0C5V9W3R7X2Y4B6D92",
] as const;
const [ONE, OTHER, THIRD] = IDS;
const MANY = Array.from({ length: 24 }, (_, at) => `many${at}`);
const SECRET = "abc/+=";
/** Says its environment and its words, and fails. */
const DYING = '#!/bin/sh\necho "$PLANTED"\nprintf "%s\\n" "$@"\nexit 3\n';

const nameOf = (allocation: string) => ({ ...LABELS, allocation, ref: "" });
const placeAt = (host: string): string =>
  `.rollout/fleet/${LABELS.run}-${LABELS.store}-${LABELS.fleet}-${host}`;
const reasonOf = (launched: Launched): string => ("reason" in launched ? launched.reason : "");
const launched = { kind: "launched" };

describe("ssh, when something is in the way", () => {
  const directory = useTemporaryDirectory();
  const sshd = useSshd(["a", "b", ...MANY]);

  afterEach(() => killWorkers(directory.path));

  const open = (worker = IDLE_WORKER): HostRig => new HostRig(directory, sshd(), worker);

  it("names a host whose key is not known, one that refuses ours, and one that does not answer, and trusts none", async () => {
    const rig = open();
    const known = directory.file("known_hosts");
    const deaf = await startDeafListener("silent");
    const port = deaf.address.split(":").at(-1);
    for (const [words, said] of [
      [[`UserKnownHostsFile=${known}`], /^a: .*host key.*known_hosts\)$/i],
      [["User=nobody"], /^a: .*permission denied.*a key of yours/i],
      [[`Port=${port}`, "ConnectTimeout=1"], /^a: .*timed out/i],
    ] as const) {
      const more = words.flatMap((word) => ["-o", word]);
      const provider = rig.provider({ hosts: ["a"], client: [...rig.client, ...more] });
      const answer = await provider.launch(launchOf(ONE));
      expect(answer.kind).to.equal("refused");
      expect(reasonOf(answer)).to.match(said);
      expect(await provider.list(LABELS)).to.have.property("kind", "unknown");
    }
    await deaf.close();
    expect(existsSync(known)).to.equal(false);
    expect(workerLines(rig.home)).to.deep.equal([]);
  });

  it("goes on with the hosts that answer, and says of the others that it knows nothing", async () => {
    const rig = open();
    // An address at which nobody listens.
    const provider = rig.provider({ hosts: ["ssh://127.0.0.1:1", "a"] });
    expect(await provider.launch(launchOf(ONE))).to.deep.equal({ ...launched, ref: "a" });
    const listing = await provider.list(LABELS);
    expect(listing).to.have.nested.property("allocations.length", 1);
    expect(listing).to.have.nested.property("silent[0].ref", "ssh://127.0.0.1:1");
    expect(listing)
      .to.have.nested.property("silent[0].reason")
      .that.matches(/refused/i);
    const second = await provider.launch(launchOf(OTHER));
    expect(second.kind).to.equal("full");
    expect(reasonOf(second)).to.match(/^each host that works has its worker; ssh:.*refused/i);
    expect(await provider.check(LABELS))
      .to.have.property("reason")
      .that.matches(/hosts that can: 1$/);
  });

  it("gives each host one worker, also where the host alone knows that it has one", async () => {
    const rig = open();
    const hosts = ["a", "b"];
    expect(await rig.provider({ hosts }).launch(launchOf(ONE))).to.deep.equal({ ...launched, ref: "a" });
    const next = rig.provider({ hosts });
    const answers = await Promise.all([OTHER, THIRD].map((id) => next.launch(launchOf(id))));
    expect(answers.map(({ kind }) => kind)).to.have.members(["launched", "full"]);
    expect(await rig.provider({ hosts }).launch(launchOf(ONE))).to.deep.equal({ ...launched, ref: "a" });
    expect(workerLines(rig.home)).to.have.length(2);
  });

  it("runs nothing of a script that was cut", async () => {
    const home = directory.file("home");
    mkdirSync(home);
    const start = {
      ...{
        program: "touch ran #",
        environment: {},
        allocation: ONE,
        slots: 1,
        words: ["it's"],
        bundle: SECRET,
      },
      ...{ manifest: undefined, coordinators: [], port: undefined },
    };
    const task: HostTask = { place: { directory: home, name: "x" }, verb: "launch", start };
    const whole = scriptOf(task, "nonce");
    const run = (input: string): string =>
      spawnSync("sh", ["-s"], { input, cwd: home, encoding: "utf8" }).stdout;
    const lengths = Array.from({ length: 40 }, (_, at) => Math.floor((at / 40) * whole.length));
    const ends = Array.from({ length: 30 }, (_, at) => whole.length - 2 - at);
    for (const length of [...lengths, ...ends])
      expect(run(whole.slice(0, length)), String(length)).to.equal("");
    expect(readdirSync(home)).to.deep.equal([]);
    expect(answerIn(run(whole), "nonce")).to.deep.equal({ kind: "done", text: "launched \n" });
    expect(answerIn("login\nrollout-nonce-begin\nhalf\n", "nonce")).to.equal(undefined);
  });

  it("never kills a process that has the id of a worker that is gone", async () => {
    const rig = open();
    const provider = rig.provider({ hosts: ["a"] });
    await provider.launch(launchOf(ONE));
    const one = join(rig.home, placeAt("a"), ONE);
    killWorkers(rig.home);
    const stranger = spawn("sleep", ["600"]);
    const ended = new Promise((resolve) => stranger.once("exit", (_, signal) => resolve(signal)));
    for (const name of ["keeper", "worker"]) {
      const [, ...rest] = readFileSync(join(one, name), "utf8").split(" ");
      writeFileSync(join(one, name), [stranger.pid, ...rest].join(" "));
    }
    const listing = await provider.list(LABELS);
    expect(listing).to.have.nested.property("allocations[0].state", "ended");
    for (const force of [false, true])
      expect(await provider.stop({ ...nameOf(ONE), force })).to.deep.equal({ kind: "stopped" });
    expect(await provider.clear({ ...LABELS, store: "*" })).to.deep.equal([]);
    expect(readdirSync(rig.home)).to.deep.equal([]);
    expect(stranger.exitCode).to.equal(null);
    stranger.kill("SIGTERM");
    expect(await ended).to.equal("SIGTERM");
  });

  it("hears a host whose login prints", async () => {
    const rig = open();
    const client = [...rig.client, "-o", `IdentityFile=${sshd().printingKey}`] as const;
    const provider = rig.provider({ hosts: ["a"], client: ["ssh", ...client.slice(1)] });
    expect(await provider.launch(launchOf(ONE))).to.deep.equal({ ...launched, ref: "a" });
    expect(await provider.list(LABELS)).to.have.nested.property("allocations[0].allocation", ONE);
    expect(await provider.check(LABELS)).to.deep.equal({ kind: "ready", words: "a worker" });
    const { stdout } = spawnSync("ssh", [...client.slice(1), "a", "true"], { encoding: "utf8" });
    expect(stdout).to.equal("welcome\nbye\n");
  });

  it("shows no secret, keeps what it writes to its account, and leaves nothing there", async () => {
    const rig = open();
    const seen = directory.file("seen");
    const client = [...rig.fake("spy", `{ echo "$@"; env; } >>${seen}\nexec "$@"`), ...rig.client] as const;
    const provider = rig.provider({ hosts: ["a"], client, environment: { PLANTED: "pl4nted 'so'" } });
    await provider.launch(launchOf(ONE));
    const one = join(rig.home, placeAt("a"), ONE);
    const modes = [one, join(one, "bundle.pem"), join(one, "log")].map((path) => statSync(path).mode & 0o777);
    expect(modes).to.deep.equal([0o700, 0o600, 0o600]);
    expect(readFileSync(join(one, "bundle.pem"), "utf8")).to.include(SECRET);
    const [line = ""] = workerLines(rig.home);
    expect(`${line} ${readFileSync(seen, "utf8")}`)
      .to.include(ONE)
      .and.not.to.include(SECRET)
      .and.not.to.include("pl4nted");
    expect(readdirSync(one)).to.not.include("keep");
    await provider.stop({ ...nameOf(ONE), force: false });
    await eventually("nothing is left", () => readdirSync(rig.home).length === 0);
  });

  it("keeps the log alone of a worker that has failed, and of one that was killed", async () => {
    const rig = open(DYING);
    const provider = rig.provider({ hosts: ["a"], environment: { PLANTED: "pl4nted 'so'" } });
    const coordinators = ["head:1", "other:2"];
    await provider.launch({ ...launchOf(ONE), coordinators });
    const one = join(rig.home, placeAt("a"), ONE);
    await eventually("it has ended", () => existsSync(join(one, "ended")));
    expect(readdirSync(one)).to.have.members(["ended", "keeper", "log", "worker"]);
    const { text = "" } = { ...(await provider.log(nameOf(ONE))) } as { text?: string };
    expect(text)
      .to.match(/^pl4nted 'so'\nworker\nrun\n--worker-id\n/)
      .and.match(/\n--coordinator-addr\nhead:1,other:2\n/);
    const killed = open().provider({ hosts: ["a"] });
    await killed.launch(launchOf(OTHER));
    killWorkers(OTHER);
    const listing = await killed.list(LABELS);
    expect(listing).to.have.nested.property("allocations[0].state", "ended");
  });

  it("says what a host lacks, and starts nothing there", async () => {
    const rig = open();
    for (const [changed, said] of [
      [{ program: "absent/rollout" }, /^a: there is no program absent\/rollout; its PATH is \//],
      [{ program: "'unclosed" }, /^a: /],
      [{ hostDirectory: "/proc/none" }, /^a: the directory \/proc\/none cannot be used/],
    ] as const) {
      const answer = await rig.provider({ hosts: ["a"], ...changed }).launch(launchOf(ONE));
      expect(answer.kind).to.equal("refused");
      expect(reasonOf(answer)).to.match(said);
    }
    expect(existsSync(rig.home) ? readdirSync(rig.home) : []).to.deep.equal([]);
  });

  it("asks many hosts, a few at once, and an sshd as it is by default turns none away", async () => {
    const rig = open();
    const seen = directory.file("seen");
    const client = rig.fake("spy", `printf + >>${seen}\n"$@"\ncode=$?\nprintf - >>${seen}\nexit $code`);
    const listing = await rig.provider({ hosts: MANY, client: [...client, ...rig.client] }).list(LABELS);
    expect(listing).to.deep.equal({ kind: "listed", allocations: [], silent: [] });
    let [logins, most] = [0, 0];
    for (const mark of readFileSync(seen, "utf8")) most = Math.max(most, (logins += mark === "+" ? 1 : -1));
    expect(most).to.be.within(2, LOGINS_AT_ONCE);
  });
});
