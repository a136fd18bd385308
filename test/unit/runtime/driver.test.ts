import { expect } from "chai";
import fc from "fast-check";
import { setup } from "xstate";
import { AssertionFailed } from "../../../src/base/assert.ts";
import { RolloutError } from "../../../src/base/errors.ts";
import { ActorSystem } from "../../../src/runtime/driver.ts";
import type { Delivery } from "../../../src/runtime/driver.ts";
import { FaultyStore } from "../../support/faulty-store.ts";
import type { Fault } from "../../support/faulty-store.ts";
import type { Store } from "../../../src/storage/store.ts";
import { ActorHost, withBell } from "./actor-host.ts";
import { CommitGate } from "../../support/commit-gate.ts";
import { rejectionOf } from "../../support/rejection.ts";
import type { BellEvent } from "./bell-chart.ts";

const ADDRESS = "bell/1";
const note = (at: number): BellEvent => ({ type: "bell.note", at });

/** Something goes wrong between the system and its store. */
const failing =
  (fault: Fault) =>
  (inner: Store): Store =>
    new FaultyStore(inner, fault);

/** A bell behind a gate that is shut when it is there. */
async function withGate(): Promise<{ host: ActorHost; gate: CommitGate; system: ActorSystem }> {
  const host = new ActorHost();
  const gate = new CommitGate("shut");
  const system = await host.open({ store: gate.over });
  const spawned = system.spawn(ADDRESS, "bell", undefined);
  await host.clock.advance();
  gate.letOneThrough();
  await spawned;
  return { host, gate, system };
}

describe("the actor system", () => {
  describe("making actors", () => {
    it("puts a new one on the disk in its initial state, and does what entering it asks for", async () => {
      const host = new ActorHost();
      const system = await host.open();
      expect(await system.spawn(ADDRESS, "bell", undefined)).to.equal(true);
      expect([system.stateOf(ADDRESS), system.contextOf(ADDRESS)]).to.deep.equal([
        "Quiet",
        { notes: 0, rings: 0 },
      ]);
      await host.clock.advance();
      expect(host.done).to.deep.equal(["greet"]);
    });

    it("leaves an address that exists as it is, in this life and in the next", async () => {
      const { host, system } = await withBell();
      await system.send(ADDRESS, note(0));
      expect(await system.spawn(ADDRESS, "bell", undefined)).to.equal(false);
      await system.close();
      const next = await host.open();
      expect(await next.spawn(ADDRESS, "bell", undefined)).to.equal(false);
      expect(next.contextOf(ADDRESS)).to.deep.equal({ notes: 1, rings: 0 });
      expect(host.done).to.deep.equal(["greet", "play 0", "record"]);
    });

    it("says that it exists only when it is on the disk", async () => {
      const host = new ActorHost();
      const gate = new CommitGate("shut");
      const system = await host.open({ store: gate.over });
      const answers: boolean[] = [];
      const first = system.spawn(ADDRESS, "bell", undefined).then((isNew) => answers.push(isNew));
      const second = system.spawn(ADDRESS, "bell", undefined).then((isNew) => answers.push(isNew));
      await host.clock.advance();
      expect(answers).to.deep.equal([]);
      gate.letOneThrough();
      await Promise.all([first, second]);
      expect(answers).to.deep.equal([true, false]);
    });

    it("delivers what is sent while the actor is being made", async () => {
      const host = new ActorHost();
      const system = await host.open();
      const spawned = system.spawn(ADDRESS, "bell", undefined);
      const sent = system.send(ADDRESS, note(0));
      await spawned;
      expect(await sent).to.deep.equal({ kind: "moved", state: "Quiet" });
      expect(host.fatal).to.deep.equal([]);
    });

    it("throws what the chart throws, and makes nothing", async () => {
      const host = new ActorHost();
      const cracked = setup({ types: { input: {} as { name: string } | undefined } }).createMachine({
        id: "cracked",
        version: "1",
        context: ({ input }) => ({ size: (input as { name: string }).name.length }),
      });
      const system = await host.open({ charts: { cracked: { machine: cracked, migrations: [] } } });
      const input = Object.defineProperty({}, "name", {
        get: () => {
          throw new RangeError("no name");
        },
      });
      expect(await rejectionOf(system.spawn("cracked/1", "cracked", input))).to.be.instanceOf(RangeError);
      expect([system.stateOf("cracked/1"), await host.recordOf("cracked/1")]).to.deep.equal([
        undefined,
        undefined,
      ]);
      expect(host.fatal).to.deep.equal([]);
    });

    it("refuses a chart that it does not have, and an address that does not exist", async () => {
      const system = await new ActorHost().open();
      expect(await rejectionOf(system.spawn("drum/1", "drum", undefined))).to.be.instanceOf(AssertionFailed);
      expect(await rejectionOf(system.send("drum/1", note(0)))).to.be.instanceOf(AssertionFailed);
      expect([system.stateOf("drum/1"), system.contextOf("drum/1")]).to.deep.equal([undefined, undefined]);
    });

    it("restores more of them than fit into one page", async () => {
      const host = new ActorHost();
      const system = await host.open();
      // Each address begins with the one before it: none of them is skipped between two pages.
      const addresses = Array.from({ length: 600 }, (_, at) => `bell/${"1".repeat(at + 1)}`);
      for (const address of addresses) await system.spawn(address, "bell", undefined);
      await system.close();
      const next = await host.open();
      for (const address of addresses) expect(next.stateOf(address)).to.equal("Quiet");
    });
  });

  describe("delivering events", () => {
    it("says what came of each", async () => {
      const { system } = await withBell();
      const said: Delivery[] = [];
      for (const event of [note(0), note(0), { type: "bell.due" }, { type: "unheard of" }])
        said.push(await system.send(ADDRESS, event));
      expect(said).to.deep.equal([
        { kind: "moved", state: "Quiet" },
        { kind: "ignored", state: "Quiet" },
        { kind: "moved", state: "Ringing" },
        { kind: "ignored", state: "Ringing" },
      ]);
    });

    it("writes nothing for an event that is ignored", async () => {
      const { host, system } = await withBell();
      await host.clock.advance();
      const steps = host.life.steps;
      await system.send(ADDRESS, { type: "unheard of" });
      expect(host.life.steps).to.equal(steps);
    });

    it("keeps to the order of sending, whatever is sent to other addresses", async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.constantFrom("bell/1", "bell/2", "bell/3"), { maxLength: 60 }),
          async (to) => {
            const host = new ActorHost();
            const system = await host.open();
            const sent = new Map<string, number>();
            for (const address of new Set(to)) await system.spawn(address, "bell", undefined);
            const deliveries = to.map((address) => {
              const at = sent.get(address) ?? 0;
              sent.set(address, at + 1);
              return system.send(address, note(at));
            });
            for (const delivery of await Promise.all(deliveries)) expect(delivery.kind).to.equal("moved");
            for (const [address, count] of sent)
              expect(system.contextOf(address)).to.include({ notes: count });
            await system.close();
            expect(host.fatal).to.deep.equal([]);
          },
        ),
        { numRuns: 40, seed: 7 },
      );
    });

    it("shows a step only when it is committed", async () => {
      const { host, gate, system } = await withGate();
      const sent = system.send(ADDRESS, { type: "bell.due" });
      await host.clock.advance();
      expect([gate.waiting, system.stateOf(ADDRESS)]).to.deep.equal([1, "Quiet"]);
      gate.letOneThrough();
      expect(await sent).to.deep.equal({ kind: "moved", state: "Ringing" });
      expect(system.stateOf(ADDRESS)).to.equal("Ringing");
    });

    it("logs each transition with where it came from and went", async () => {
      const { host, system } = await withBell();
      await system.send(ADDRESS, { type: "bell.due" });
      await system.send(ADDRESS, { type: "unheard of" });
      expect(host.log.lines).to.deep.equal([
        {
          level: "info",
          message: "transition",
          fields: { address: ADDRESS, event: "bell.due", from: "Quiet", to: "Ringing" },
        },
        {
          level: "debug",
          message: "event ignored",
          fields: { address: ADDRESS, event: "unheard of", state: "Ringing" },
        },
      ]);
    });

    it("refuses what a full mailbox cannot hold, and loses nothing else (C8)", async () => {
      const { host, gate, system } = await withGate();
      const first = system.send(ADDRESS, note(0));
      await host.clock.advance();
      // Its commit is held up: nothing after it is taken out of the mailbox.
      expect(gate.waiting).to.equal(1);
      const behind = Array.from({ length: 1_024 }, (_, at) => system.send(ADDRESS, note(at + 1)));
      expect(await rejectionOf(system.send(ADDRESS, note(1_025)))).to.be.instanceOf(AssertionFailed);
      const sent = [first, ...behind];
      let delivered = 0;
      for (const one of sent) void one.then(({ kind }) => (delivered += kind === "moved" ? 1 : 0));
      while (delivered < sent.length) {
        gate.letOneThrough();
        await host.clock.advance();
      }
      expect(system.contextOf(ADDRESS)).to.include({ notes: 1_025 });
      expect(host.fatal).to.deep.equal([]);
    });
  });

  describe("a chart that throws", () => {
    for (const type of ["bell.guardThrows", "bell.assignThrows"] as const)
      it(`is reported and goes on from its last snapshot (${type})`, async () => {
        const { host, system } = await withBell();
        await system.send(ADDRESS, note(0));
        const before = await host.recordOf(ADDRESS);
        const [faulted, next] = [system.send(ADDRESS, { type }), system.send(ADDRESS, note(1))];
        expect(await faulted).to.deep.equal({ kind: "faulted" });
        expect(await next).to.deep.equal({ kind: "moved", state: "Quiet" });
        expect(before?.context).to.deep.equal({ notes: 1, rings: 0 });
        expect(system.contextOf(ADDRESS)).to.deep.equal({ notes: 2, rings: 0 });
        const errors = host.log.lines.filter(({ level }) => level === "error");
        expect(errors.map(({ fields }) => [fields["address"], fields["event"]])).to.deep.equal([
          [ADDRESS, type],
        ]);
        expect(errors[0]?.fields["err"]).to.be.instanceOf(Error);
        await host.clock.advance();
        expect(host.done).to.deep.equal(["greet", "play 0", "record", "play 1", "record"]);
        expect(host.fatal).to.deep.equal([]);
      });
  });

  describe("a store that cannot say what it wrote", () => {
    // The second commit is the event's.
    for (const kind of ["fail_before", "fail_after"] as const)
      it(`is the end: reported once, the event rejected, nothing more done (${kind})`, async () => {
        const host = new ActorHost();
        const options = { store: failing({ nth: 2, kind }) };
        const system = await host.open(options);
        await system.spawn(ADDRESS, "bell", undefined);
        await host.clock.advance();
        const outcomes = [note(0), note(1)].map((event) => rejectionOf(system.send(ADDRESS, event)));
        const [first, second] = await Promise.all(outcomes);
        expect(first).to.be.instanceOf(RolloutError).with.property("code", "store_write_failed");
        expect(second).to.equal(first);
        await host.clock.advance(60_000);
        expect(host.fatal).to.deep.equal([first]);
        expect(host.done).to.deep.equal(["greet"]);
        expect(await rejectionOf(system.send(ADDRESS, note(2)))).to.equal(first);
        expect(await rejectionOf(system.spawn(ADDRESS, "bell", undefined))).to.equal(first);
        expect(system.contextOf(ADDRESS)).to.deep.equal({ notes: 0, rings: 0 });
        await system.close();

        const next = await host.open();
        await host.clock.advance();
        expect(next.contextOf(ADDRESS)).to.include({ notes: kind === "fail_after" ? 1 : 0 });
        expect(host.done).to.deep.equal(["greet"]);
      });

    it("stops the effects of every other actor as well", async () => {
      const host = new ActorHost();
      const system = await host.open({
        // Two commits are in order: one for each actor.
        store: failing({ nth: 3, kind: "fail_before" }),
        perform: ({ address, type }) => {
          if (address === "bell/1" && type === "greet") throw new Error("not now");
        },
      });
      await system.spawn("bell/1", "bell", undefined);
      await system.spawn("bell/2", "bell", undefined);
      await host.clock.advance();
      const tries = host.log.lines.length;
      expect(await rejectionOf(system.send("bell/2", note(0)))).to.have.property(
        "code",
        "store_write_failed",
      );
      await host.clock.advance(60_000);
      expect(host.log.lines.length).to.equal(tries);
      expect(host.performed.map(({ address }) => address)).to.deep.equal(["bell/2"]);
    });

    it("ends a new actor too", async () => {
      const host = new ActorHost();
      const system = await host.open({ store: failing({ kind: "fail_before" }) });
      const error = await rejectionOf(system.spawn(ADDRESS, "bell", undefined));
      await host.clock.advance(60_000);
      expect([host.fatal, host.done]).to.deep.equal([[error], []]);
    });

    it("ends when somebody else has written the record", async () => {
      const host = new ActorHost();
      const [one, other] = [await host.open(), await host.open()];
      await one.spawn(ADDRESS, "bell", undefined);
      expect(await rejectionOf(other.spawn(ADDRESS, "bell", undefined))).to.be.instanceOf(AssertionFailed);
      expect(host.fatal).to.have.length(1);
      expect(host.fatal[0]).to.be.instanceOf(AssertionFailed);
    });
  });

  describe("closing", () => {
    it("finishes what was sent before, and refuses what comes after", async () => {
      const { host, system } = await withBell();
      const sent = [note(0), note(1)].map((event) => system.send(ADDRESS, event));
      const closed = system.close();
      expect(await rejectionOf(system.send(ADDRESS, note(2)))).to.be.instanceOf(AssertionFailed);
      expect(await rejectionOf(system.spawn("bell/2", "bell", undefined))).to.be.instanceOf(AssertionFailed);
      await closed;
      expect((await Promise.all(sent)).map(({ kind }) => kind)).to.deep.equal(["moved", "moved"]);
      expect(host.done).to.deep.equal(["greet", "play 0", "record", "play 1", "record"]);
      const record = await host.recordOf(ADDRESS);
      expect(record?.context).to.deep.equal({ notes: 2, rings: 0 });
      await system.close();
    });
  });

  it("rejects when the store cannot be read at the start", async () => {
    const host = new ActorHost();
    const options = host.begin({ store: failing({ at: "scan", kind: "fail_before" }) });
    expect(await rejectionOf(ActorSystem.open(options))).to.have.property("code", "store_corrupt");
  });
});
