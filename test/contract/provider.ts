// The contract of a provider of workers, which every one of them keeps: run against each that there is.
import { expect } from "chai";
import { readdirSync, readFileSync } from "node:fs";
import type { FleetLabels, LaunchRequest, Provider } from "../../src/fleet/provider.ts";
import { eventually } from "../support/eventually.ts";

/** A system that has machines, with workers that do nothing but live until they are ended. */
export interface ProviderRig {
  readonly provider: Provider;
  /** Does what it is asked, and its answers are lost. */
  readonly losesAnswers: Provider;
  /** Fails without an answer at all, in different ways; by a name for people. */
  readonly broken: Readonly<Record<string, Provider>>;
  /** Says of its allocations a state that nobody knows. */
  readonly oddWord: Provider;
  /** Has no room, and says this. */
  readonly full: Provider;
  readonly fullReason: string;
  /** Says no, by this. */
  readonly refuses: Provider;
  readonly refusedReason: string;
  /** Says `pa55` in the log of a worker as a private key, and in its reasons as the user of a URL. */
  readonly tellsSecrets: Provider;
  /** Command lines of the workers that live. */
  readonly workers: () => Promise<readonly string[]>;
  /** Warnings that were logged since it was opened. */
  readonly warnings: () => readonly string[];
}

const RUN = "01JZ8Q6T0C5V9W3R7X2Y4B6D8F";
export const LABELS: FleetLabels = { run: RUN, store: "01JZ8Q6T0C5V9W3R7X2Y4B6D8G", fleet: "spot" };
const [ONE, OTHER] = ["01JZ8Q6T0C5V9W3R7X2Y4B6D90", "01JZ8Q6T0C5V9W3R7X2Y4B6D91"];

export function launchOf(allocation: string): LaunchRequest {
  const bundle = "# a secret\n-----BEGIN KEY-----\nabc/+=\n-----END KEY-----\n";
  const environment = { ROLLOUT_WORKER_ORPHAN_TIMEOUT: "1800000ms" };
  return { ...LABELS, allocation, epoch: 3, slots: 2, coordinators: ["127.0.0.1:1"], environment, bundle };
}

function nameOf(allocation: string): FleetLabels & { readonly allocation: string; readonly ref: string } {
  return { ...LABELS, allocation, ref: "" };
}

async function listed(provider: Provider, labels: FleetLabels = LABELS): Promise<string[]> {
  const listing = await provider.list(labels);
  expect(listing.kind).to.equal("listed");
  const found = listing.kind === "listed" ? listing.allocations : [];
  return found.filter(({ state }) => state !== "ended").map(({ allocation }) => allocation);
}

/** A worker that does nothing: it says something, and stays until it is ended. */
export const IDLE_WORKER = `#!/bin/sh
[ "$1" = --version ] && { echo "a worker"; exit; }
echo 'a "worker" \\ lives'
trap 'exit 0' TERM
while :; do sleep 0.3; done
`;

/** Command lines of the workers that live and have that in theirs. */
export function workerLines(mark: string): readonly string[] {
  return processIds()
    .map(commandLine)
    .filter((line) => line.includes(mark) && line.includes("worker run"));
}

/** For the end of a test: they are in process groups of their own. */
export function killWorkers(mark: string): void {
  for (const id of processIds()) if (commandLine(id).includes(mark)) process.kill(Number(id), "SIGKILL");
}

/** Empty when there is no such process. */
export function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
  } catch {
    return "";
  }
}

function processIds(): string[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
}

/** Defines the tests of one provider. `open` has a system of its own for each test, which is gone at its end. */
export function providerContract(name: string, open: () => Promise<ProviderRig>): void {
  describe(`a provider: ${name}`, () => {
    it("lists what it has launched, with a reference, until it is stopped", async () => {
      const { provider } = await open();
      expect(await listed(provider)).to.deep.equal([]);
      const launched = await provider.launch(launchOf(ONE));
      expect(launched.kind).to.equal("launched");
      expect(await provider.launch(launchOf(OTHER))).to.have.property("kind", "launched");
      expect(await listed(provider)).to.have.members([ONE, OTHER]);
      const ref = launched.kind === "launched" ? launched.ref : "";
      expect(ref).not.to.equal("");
      await provider.stop({ ...nameOf(ONE), ref, force: false });
      await eventually("only the other is left", async () => String(await listed(provider)) === OTHER);
    });

    it("finds by its list a launch whose answer was lost", async () => {
      const { provider, losesAnswers, workers } = await open();
      expect(await losesAnswers.launch(launchOf(ONE))).to.have.property("kind", "unknown");
      await eventually("the list has it", async () => String(await listed(provider)) === ONE);
      expect(await workers()).to.have.length(1);
    });

    it("makes no second worker of a launch that is repeated under its id", async () => {
      const { provider, losesAnswers, workers } = await open();
      await losesAnswers.launch(launchOf(ONE));
      expect(await provider.launch(launchOf(ONE))).to.have.property("kind", "launched");
      expect(await provider.launch(launchOf(ONE))).to.have.property("kind", "launched");
      expect(await listed(provider)).to.deep.equal([ONE]);
      expect(await workers()).to.have.length(1);
    });

    it("says unknown, and never that nothing is there, when a list fails or is cut", async () => {
      const { provider, broken } = await open();
      await provider.launch(launchOf(ONE));
      expect(Object.keys(broken)).not.to.be.empty;
      for (const [how, one] of Object.entries(broken)) {
        const listing = await one.list(LABELS);
        expect(listing.kind, how).to.equal("unknown");
        expect(listing.kind === "unknown" ? listing.reason : "", how).not.to.equal("");
        expect((await one.log(nameOf(ONE))).kind, how).to.equal("unknown");
      }
      expect(await listed(provider)).to.deep.equal([ONE]);
    });

    it("takes a word that it does not know for running, and warns of it", async () => {
      const { provider, oddWord, warnings } = await open();
      await provider.launch(launchOf(ONE));
      const listing = await oddWord.list(LABELS);
      expect(listing).to.have.property("kind", "listed");
      expect(listing.kind === "listed" && listing.allocations[0]).to.include({
        allocation: ONE,
        state: "running",
      });
      await oddWord.list(LABELS);
      expect(warnings()).to.have.length(1);
    });

    it("is fine with a second stop, and with one of an allocation that never was", async () => {
      const { provider } = await open();
      await provider.launch(launchOf(ONE));
      expect(await provider.stop({ ...nameOf(ONE), force: false })).to.deep.equal({ kind: "stopped" });
      expect(await provider.stop({ ...nameOf(ONE), force: true })).to.deep.equal({ kind: "stopped" });
      await eventually("it is gone", async () => (await listed(provider)).length === 0);
      expect(await provider.stop({ ...nameOf(ONE), force: true })).to.deep.equal({ kind: "stopped" });
      expect(await provider.stop({ ...nameOf(OTHER), force: false })).to.deep.equal({ kind: "stopped" });
    });

    it("neither lists nor ends what carries another run's, store's or fleet's name", async () => {
      const { provider, workers } = await open();
      await provider.launch(launchOf(ONE));
      const others = [
        { ...LABELS, run: "01JZ8Q6T0C5V9W3R7X2Y4B6D8Z" },
        { ...LABELS, store: "01JZ8Q6T0C5V9W3R7X2Y4B6D8Z" },
        { ...LABELS, fleet: "other" },
      ];
      for (const labels of others) {
        expect(await listed(provider, labels)).to.deep.equal([]);
        await provider.stop({ ...labels, allocation: ONE, ref: "", force: true });
      }
      expect(await listed(provider)).to.deep.equal([ONE]);
      expect(await workers()).to.have.length(1);
    });

    it("names run and allocation in the command line of the worker, and no secret", async () => {
      const { provider, workers } = await open();
      await provider.launch(launchOf(ONE));
      const [line = ""] = await workers();
      expect(line).to.include(RUN).and.to.include(ONE).and.not.to.include("abc/+=");
    });

    it("tells the last words of a worker, also of one that has ended", async () => {
      const { provider } = await open();
      await provider.launch(launchOf(ONE));
      await eventually("its first words", async () => {
        const found = await provider.log(nameOf(ONE));
        return found.kind === "log" && found.text === 'a "worker" \\ lives\n';
      });
      await provider.stop({ ...nameOf(ONE), force: true });
      await eventually("it is gone", async () => (await listed(provider)).length === 0);
      expect(await provider.log(nameOf(ONE))).to.have.property("kind", "log");
    });

    it("says no secret, in a log or in a reason", async () => {
      const { tellsSecrets } = await open();
      const said = [
        await tellsSecrets.log(nameOf(ONE)),
        await tellsSecrets.launch(launchOf(ONE)),
        await tellsSecrets.list(LABELS),
        await tellsSecrets.check(LABELS),
      ];
      expect(said.map(({ kind }) => kind)).to.deep.equal(["log", "refused", "unknown", "refused"]);
      for (const one of said) expect(JSON.stringify(one)).to.include("redacted").and.not.to.include("pa55");
    });

    it("tells a launch for which there is no room from one that is refused", async () => {
      const { provider, full, fullReason, refuses, refusedReason } = await open();
      expect(await full.launch(launchOf(ONE))).to.deep.equal({ kind: "full", reason: fullReason });
      const refused = { kind: "refused", reason: refusedReason };
      expect(await refuses.launch(launchOf(ONE))).to.deep.equal(refused);
      expect(await refuses.check(LABELS)).to.deep.equal(refused);
      expect(await provider.check(LABELS)).to.deep.equal({ kind: "ready", words: "a worker" });
    });
  });
}
