import { expect } from "chai";
import { Turn } from "../../../../src/coordinator/turn/turn.ts";
import type { FleetSettings } from "../../../../src/config/fleet.ts";
import { FleetRig, SETTINGS } from "./fleet-rig.ts";

const ORPHAN = "01JZ8Q6T0C5V9W3R7X2Y4B6D90";

/** A fleet that may start workers, with so many of them at work. */
async function working(workers: number, ...settings: readonly Partial<FleetSettings>[]): Promise<FleetRig> {
  const rig = await FleetRig.open(...settings);
  await rig.haveItems(workers);
  for (let tries = 0; rig.live.length < workers && tries < 50; tries++) {
    await rig.pass(1_000);
    await rig.launch();
  }
  for (const id of rig.live) rig.worker(id);
  await rig.pass(250);
  expect(rig.live.map((id) => rig.stateOf(id))).to.deep.equal(rig.live.map(() => "Joined"));
  await rig.list(rig.live.map((allocation) => ({ allocation })));
  return rig;
}

async function factsOf(rig: FleetRig): Promise<readonly string[]> {
  let facts: readonly string[] = [];
  await rig.turn((turn) => void (facts = rig.fleets.detailed(turn).fleets[0]?.facts ?? []));
  return facts;
}

describe("a fleet of the coordinator", () => {
  it("launches nothing before it has a good list, and then what is wanted, each row before its launch", async () => {
    const rig = await FleetRig.open();
    rig.submit(3);
    await rig.pass(5_000);
    expect(rig.take("launch")).to.deep.equal([]);
    await rig.failList();
    await rig.pass(1_000);
    expect(rig.take("launch")).to.deep.equal([]);
    await rig.list([]);
    await rig.pass(5_000);
    expect(rig.live).to.have.length(3);
    expect(rig.take("launch").map(({ allocation }) => allocation)).to.deep.equal(rig.live);
    for (const id of rig.live) expect(await rig.store.get(`allocations/${id}`)).not.to.equal(undefined);
  });

  it("grows to the double at most in a poll", async () => {
    const rig = await FleetRig.open({ max: 40, maxPending: 40 });
    await rig.haveItems(40);
    const sizes: number[] = [];
    for (let polls = 0; polls < 5; polls++) {
      await rig.pass(1_000);
      sizes.push(rig.live.length);
    }
    for (const [at, size] of sizes.entries()) expect(size).to.be.at.most(2 * (sizes[at - 1] ?? 1));
    expect(sizes.at(-1)).to.be.above(8);
  });

  it("follows a worker from its queue to its end, and books the time of its machine", async () => {
    const rig = await FleetRig.open();
    await rig.haveItems(1);
    const id = await rig.launchOne();
    expect(rig.stateOf(id)).to.equal("Queued");
    await rig.pass(1_000);
    await rig.list([{ allocation: id, state: "queued" }]);
    expect(rig.stateOf(id)).to.equal("Queued");
    await rig.pass(1_000);
    await rig.list([{ allocation: id }]);
    expect(rig.stateOf(id)).to.equal("Booting");
    await rig.pass(2_000);
    rig.worker(id);
    await rig.pass(250);
    expect(rig.stateOf(id)).to.equal("Joined");
    rig.numbers.pending = 0;
    rig.worker(id, { hasItems: false });
    await rig.pass(4_000);
    expect(rig.stateOf(id)).to.equal("Joined");
    await rig.pass(2_000);
    expect(rig.stateOf(id)).to.equal("Ending");
    expect(rig.drained).to.deep.equal([id]);
    rig.worker(id, { presence: "left" });
    await rig.pass(1_000);
    await rig.list([]);
    expect(rig.stateOf(id)).to.equal("Gone");
    const bookedMs = rig.fleet.machineMs;
    expect(bookedMs).to.be.within(8_000, 11_000);
    await rig.pass(10_000);
    expect(rig.fleet.machineMs).to.equal(bookedMs);
    expect(rig.events).to.include.members(["allocation_launched", "allocation_joined", "allocation_ended"]);
    expect(rig.payloads.at(-1)).to.include({ outcome: "ended", cause: "idle" });
    expect(rig.live).to.deep.equal([]);
  });

  it("concludes nothing from a list that failed, from a worker that is heard, or from a list of before the launch", async () => {
    const rig = await working(1);
    const [id = ""] = rig.live;
    rig.submit(1);
    await rig.pass(1_000);
    // Asked for while the launch is under way.
    await rig.list([]);
    expect(rig.live).to.have.length(2);
    expect(rig.stateOf(id)).to.equal("Joined");
    // Asked for before the answer, and answered after it.
    await rig.pass(1_000);
    const [other = ""] = await rig.launch();
    await rig.list([]);
    expect(rig.stateOf(other)).to.equal("Queued");
    await rig.pass(2_000);
    await rig.failList();
    expect(rig.live).to.have.length(2);
    await rig.pass(2_000);
    expect(rig.take("launch")).to.deep.equal([]);
  });

  it("concludes nothing from a list about a place that was silent, and goes on elsewhere", async () => {
    const rig = await working(2);
    const [there = "", here = ""] = rig.live;
    for (const id of [there, here]) rig.worker(id, { hasWorked: true });
    await rig.pass(1_000);
    for (const id of [there, here]) rig.worker(id, { presence: "silent", silentMs: 5_000 });
    rig.submit(1);
    await rig.pass(1_000);
    const [lost = ""] = await rig.launch({ kind: "unknown", reason: "it was killed" });
    const silent = [{ ref: "7", reason: "down" }];
    for (let lists = 0; lists < 3; lists++) {
      await rig.pass(1_000);
      await rig.list([{ allocation: here, ref: "8", state: "ended" }], silent);
    }
    expect([there, here, lost].map((id) => rig.stateOf(id))).to.deep.equal(["Joined", "Gone", "Requested"]);
    await rig.pass(40_000);
    const launches = rig.take("launch").map(({ allocation }) => allocation);
    expect(launches).to.have.length(1);
    expect([there, here, lost]).not.to.include(launches[0]);
    expect(await factsOf(rig)).to.include("its last list says nothing of down");
    await rig.list([]);
    expect(rig.stateOf(there)).to.equal("Gone");
    expect(await factsOf(rig)).not.to.include("its last list says nothing of down");
  });

  it("asks at once about a worker that turns silent, and replaces a worker that is gone", async () => {
    const rig = await working(1, { pollIntervalMs: 30_000 });
    const [id = ""] = rig.live;
    rig.worker(id, { presence: "silent", silentMs: 5_000 });
    await rig.pass(250);
    await rig.list([]);
    expect(rig.stateOf(id)).to.equal("Gone");
    expect(rig.payloads.at(-1)).to.include({ outcome: "lost" });
    await rig.pass(31_000);
    expect(rig.live).to.have.length(1);
    expect(rig.live).not.to.include(id);
  });

  it("repeats a launch under its id when its answer and two lists are missing", async () => {
    const rig = await FleetRig.open();
    await rig.haveItems(1);
    const id = await rig.launchOne({ kind: "unknown", reason: "it was killed" });
    for (let lists = 0; lists < 3; lists++) {
      await rig.pass(1_000);
      await rig.list([]);
    }
    expect(rig.take("launch")).to.deep.equal([]);
    await rig.pass(30_000);
    expect((await rig.launch())[0]).to.equal(id);
    expect(rig.live).to.deep.equal([id]);
  });

  it("finds by its list a launch whose answer was lost", async () => {
    const rig = await FleetRig.open();
    await rig.haveItems(1);
    const id = await rig.launchOne({ kind: "unknown", reason: "it was killed" });
    await rig.pass(1_000);
    await rig.list([{ allocation: id }]);
    expect(rig.stateOf(id)).to.equal("Booting");
    await rig.pass(40_000);
    expect(rig.take("launch")).to.deep.equal([]);
  });

  it("waits longer after each failed start, tries one at a time, and halts at the eighth", async () => {
    const rig = await FleetRig.open({ max: 4 });
    await rig.haveItems(4);
    let launches = 0;
    for (let passedMs = 0; passedMs < 3_600_000; passedMs += 5_000) {
      await rig.pass(1_000);
      rig.nowMs += 4_000;
      const ids = await rig.launch({ kind: "refused", reason: "no such image" });
      if (launches > 0) expect(ids.length).to.be.at.most(1);
      launches += ids.length;
      for (const { fleet, allocation } of rig.take("log"))
        await rig.answer({
          verb: "log",
          fleet,
          allocation,
          answer: { kind: "log", text: "no module torch" },
        });
      await rig.list([]);
    }
    expect(launches).to.equal(8);
    expect(rig.state).to.equal("Halted");
    expect(rig.events.filter((topic) => topic === "fleet_halted")).to.have.length(1);
    await rig.turn((turn) => {
      const decision = { action: "resume", fleet: "spot" } as const;
      rig.fleets.steer(turn, { by: "ada", decision }, rig.run);
    });
    expect(rig.state).to.equal("Active");
    await rig.pass(1_000);
    expect(rig.take("launch")).to.have.length(1);
  });

  it("keeps the last words of a failed start, without a key in them", async () => {
    const rig = await FleetRig.open();
    await rig.haveItems(1);
    const id = await rig.launchOne();
    await rig.pass(1_000);
    await rig.list([]);
    expect(rig.stateOf(id)).to.equal("Failed");
    const [asked] = rig.take("log");
    expect(asked).to.include({ allocation: id });
    const text = "no GPU\n-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\nbye\n";
    await rig.answer({ verb: "log", fleet: "spot", allocation: id, answer: { kind: "log", text } });
    await rig.restart();
    const found = rig.fleets.allocation(id)?.allocation.log;
    expect(found).to.include("no GPU").and.to.include("bye").and.not.to.include("abc");
  });

  it("waits where there is no room, and counts nothing against the fleet", async () => {
    const rig = await FleetRig.open();
    await rig.haveItems(4);
    let launches = 0;
    for (let passedMs = 0; passedMs < 3_600_000; passedMs += 5_000) {
      await rig.pass(1_000);
      rig.nowMs += 4_000;
      launches += (await rig.launch({ kind: "full", reason: "quota" })).length;
      await rig.list([]);
    }
    expect(launches).to.be.within(6, 20);
    expect(rig.state).not.to.equal("Halted");
    expect(rig.fleet.row.context.failuresInRow).to.equal(0);
    rig.nowMs += 600_000;
    await rig.pass(1_000);
    const [id = ""] = await rig.launch();
    rig.worker(id);
    await rig.pass(250);
    expect(rig.state).to.equal("Active");
  });

  it("launches 60 in an hour at most while none joins", async () => {
    const rig = await FleetRig.open({ max: 200, maxPending: 200 });
    await rig.haveItems(500);
    let launches = 0;
    for (let passedMs = 0; passedMs < 3_600_000; passedMs += 60_000) {
      await rig.pass(1_000);
      rig.nowMs += 59_000;
      launches += (await rig.launch({ kind: "unknown", reason: "slow" })).length;
      await rig.list(rig.live.map((allocation) => ({ allocation, state: "queued" })));
    }
    expect(rig.live).to.have.length(60);
    expect(launches).to.equal(60);
  });

  it("gives back a machine whose worker does not join in time, and repeats that until the machine is gone", async () => {
    const rig = await FleetRig.open({ max: 1 });
    await rig.haveItems(1);
    const id = await rig.launchOne();
    const stops: string[] = [];
    for (let passedMs = 0; passedMs < 400_000; passedMs += 1_000) {
      await rig.pass(1_000);
      stops.push(...(await rig.answerStops()));
      await rig.list([{ allocation: id }]);
    }
    expect(stops.slice(0, 3)).to.deep.equal([id, `${id} by force`, `${id} by force`]);
    expect(rig.events.filter((topic) => topic === "allocation_stuck")).to.have.length(1);
    expect(rig.live).to.deep.equal([id]);
    await rig.pass(1_000);
    await rig.list([]);
    expect(rig.stateOf(id)).to.equal("Failed");
    expect(rig.fleet.row.context.failuresInRow).to.equal(1);
  });

  it("starts nothing more than its budget can end, and drains all of it before that is used up", async () => {
    const settings = { max: 4, pricePerHour: 2, maxCost: 0.5, maxCostPerHour: 5 };
    const rig = await FleetRig.open(settings);
    await rig.haveItems(100);
    let most = 0;
    for (let passedMs = 0; passedMs < 3_600_000 && rig.state !== "Spent"; passedMs += 1_000) {
      await rig.pass(1_000);
      for (const id of await rig.launch()) rig.worker(id);
      most = Math.max(most, rig.live.length);
      await rig.list(rig.live.map((allocation) => ({ allocation })));
    }
    // Two machines cost 4 an hour; a third would make it 6.
    expect(most).to.equal(2);
    expect(rig.drained).to.have.length(2);
    for (const id of rig.live) rig.worker(id, { presence: "left", isOfUse: false });
    await rig.pass(1_000);
    await rig.list([]);
    // A quarter of an hour of machines, and not more.
    expect(rig.fleet.machineMs).to.be.within(800_000, 900_000);
    await rig.pass(1_000);
    expect(rig.paused).to.deep.equal(["fleet spot: max_cost is used up"]);
    await rig.restart();
    await rig.pass(2_000);
    expect([rig.state, rig.take("launch")]).to.deep.equal(["Deferred", []]);
    expect(rig.fleets.shown(new Turn(1, 1, 1))).to.have.nested.property("[0].state", "Spent");

    // A person resumes the run without a larger budget: neither this leader nor the next one asks again, until somebody has been there.
    rig.numbers.isIdle = false;
    await rig.pass(1_000);
    await rig.restart();
    await rig.pass(1_000);
    expect(rig.paused).to.have.length(1);
    rig.worker("by hand");
    await rig.pass(250);
    expect(rig.state).to.equal("Spent");
    rig.worker("by hand", { presence: "left", isOfUse: false });
    await rig.pass(250);
    expect([rig.paused.length, rig.state]).to.deep.equal([2, "Deferred"]);

    await rig.restart([{ ...SETTINGS, ...settings, maxCost: 5 }]);
    rig.numbers.isIdle = false;
    await rig.pass(250);
    await rig.list([]);
    await rig.pass(1_000);
    expect(rig.state).to.equal("Active");
    expect(rig.take("launch")).not.to.be.empty;
  });

  it("drains a paused fleet when its budget is used up, and says so once", async () => {
    const rig = await working(2, { maxMachineHours: 0.25 });
    await rig.turn((turn) => {
      const decision = { action: "pause", fleet: "spot", reason: "at night" } as const;
      rig.fleets.steer(turn, { by: "ada", decision }, rig.run);
    });
    rig.nowMs += 440_000;
    await rig.pass(1_000);
    expect(rig.live.map((id) => rig.stateOf(id))).to.deep.equal(["Ending", "Ending"]);
    const other = await working(2, { maxMachineHours: 0.25 });
    other.nowMs += 440_000;
    await other.pass(1_000);
    const [first = "", second = ""] = other.live;
    other.worker(first, { presence: "left", isOfUse: false });
    await other.pass(1_000);
    await other.list([{ allocation: second }]);
    await other.pass(5_000);
    expect([other.stateOf(first), other.state]).to.deep.equal(["Gone", "Spent"]);
    expect(other.events.filter((topic) => topic === "fleet_spent")).to.have.length(1);
  });

  it("sends away a worker that is heard again after its allocation was over", async () => {
    const rig = await working(1);
    const [id = ""] = rig.live;
    rig.worker(id, { presence: "silent", isOfUse: false });
    await rig.pass(1_000);
    await rig.list([]);
    expect(rig.stateOf(id)).to.equal("Gone");
    rig.worker(id, { presence: "heard", isOfUse: true });
    await rig.pass(250);
    expect(rig.drained).to.deep.equal([id]);
  });

  it("ends all of its workers when the run is over", async () => {
    const rig = await working(2, { min: 1 });
    rig.numbers = { ...rig.numbers, pending: 0, isIdle: true, isOver: true };
    await rig.pass(250);
    expect(rig.live.map((id) => rig.stateOf(id))).to.deep.equal(["Ending", "Ending"]);
  });

  it("adopts a machine of its own that no row explains if it is wanted, and else ends it", async () => {
    const rig = await FleetRig.open({ max: 2 });
    await rig.pass(250);
    await rig.list([{ allocation: ORPHAN }]);
    expect(rig.stateOf(ORPHAN)).to.equal("Ending");
    expect(rig.payloads.find((payload) => "adopted" in payload)).to.include({ adopted: false });
    await rig.pass(250);
    expect(await rig.answerStops()).to.deep.equal([ORPHAN]);
    const other = await FleetRig.open({ max: 2 });
    other.submit(2);
    await other.pass(250);
    await other.list([{ allocation: ORPHAN }]);
    expect(other.stateOf(ORPHAN)).to.equal("Booting");
    await other.pass(1_000);
    expect(other.live).to.have.length(2);
  });

  it("stops what is over by its row and is listed all the same", async () => {
    const rig = await working(1);
    const [id = ""] = rig.live;
    rig.worker(id, { presence: "silent" });
    await rig.pass(1_000);
    await rig.list([]);
    expect(rig.stateOf(id)).to.equal("Gone");
    await rig.pass(10_000);
    await rig.list([{ allocation: id }]);
    expect(await rig.answerStops()).to.deep.equal([`${id} by force`]);
  });

  it("is drained when the file does not have it any more", async () => {
    const rig = await working(2);
    await rig.restart([{ ...SETTINGS, name: "other" }]);
    await rig.pass(250);
    expect([...rig.drained]).to.have.length(2);
    expect(rig.fleets.named("spot")?.isConfigured).to.equal(false);
  });

  it("is after a restart what it was: same states, same books, nothing launched twice", async () => {
    const rig = await working(2);
    rig.submit(2);
    await rig.pass(1_000);
    const asked = rig.take("launch").map(({ allocation }) => allocation);
    expect(asked).not.to.be.empty;
    const before = rig.live.map((id) => [id, rig.stateOf(id)]);
    const books = { ...rig.fleet.learned };
    await rig.restart();
    expect(rig.live.map((id) => [id, rig.stateOf(id)])).to.deep.equal(before);
    expect(rig.fleet.learned.joinMs).to.equal(books.joinMs);
    await rig.pass(2_000);
    expect(rig.take("launch"), "before a list").to.deep.equal([]);
    // The launches had landed: the list has them all.
    await rig.list(rig.live.map((allocation) => ({ allocation })));
    await rig.pass(1_000);
    expect(rig.live).to.have.members([...before.map(([id]) => id), ...rig.live.slice(before.length)]);
    for (const id of rig.take("launch").map(({ allocation }) => allocation)) expect(asked).not.to.include(id);
  });

  it("lets in only its own worker by the bundle of an allocation, until the allocation is over", async () => {
    const rig = await working(1);
    const [id = ""] = rig.live;
    const by = (bundle: string, worker: string, request = "a"): string | undefined =>
      rig.fleets.refusalOf({ id: bundle, request }, worker);
    expect([by(id, id), by(ORPHAN, id)]).to.deep.equal([undefined, undefined]);
    expect(by(id, ORPHAN)).to.equal(`it is for the worker of allocation ${id} alone`);
    await rig.turn((turn) => rig.fleets.noteRequest(turn, { id, request: "a" }));
    // The same again gets the same, of the next leader too; another one gets nothing.
    await rig.restart();
    expect(by(id, id)).to.equal(undefined);
    expect(by(id, id, "b")).to.equal(`the worker of allocation ${id} has joined by another request`);
    rig.worker(id, { presence: "left" });
    await rig.pass(250);
    expect(by(id, id)).to.equal(`allocation ${id} is over`);
  });

  it("replaces workers of other launch settings one at a time, each when the one before has joined", async () => {
    const rig = await working(2);
    const before = [...rig.live];
    const endings = (): string[] => rig.live.filter((id) => rig.stateOf(id) === "Ending");
    rig.fleets.configure([{ ...SETTINGS, max: 3 }]);
    await rig.pass(1_000);
    expect(endings(), "limits are no launch settings").to.deep.equal([]);
    const provider = { ...SETTINGS.provider, command: ["other"] } as const;
    rig.fleets.configure([{ ...SETTINGS, provider }]);
    await rig.pass(1_000);
    const [first = ""] = endings();
    expect([endings(), rig.drained]).to.deep.equal([[first], [first]]);
    // It has left, and the one in its place is awaited.
    rig.worker(first, { presence: "left", isOfUse: false });
    for (let polls = 0; polls < 5; polls++) {
      await rig.pass(1_000);
      await rig.list(rig.live.filter((id) => id !== first).map((allocation) => ({ allocation })));
    }
    const [fresh = ""] = await rig.launch();
    expect(before).not.to.include(fresh);
    await rig.pass(2_000);
    expect(endings()).to.deep.equal([]);
    // The next leader knows it too.
    await rig.restart([{ ...SETTINGS, provider }]);
    rig.worker(fresh);
    await rig.pass(250);
    await rig.list(rig.live.map((allocation) => ({ allocation })));
    await rig.pass(1_000);
    expect(endings()).to.deep.equal(before.filter((id) => id !== first));
  });

  it("says the latest moment in its rows to the next leader, whose clock may be behind", async () => {
    const rig = await working(1);
    const [id = ""] = rig.live;
    const { joinedAtMs } = rig.fleets.allocation(id)?.allocation.row.context ?? {};
    await rig.restart();
    expect(rig.fleets.latestMs).to.equal(joinedAtMs);
  });

  it("takes up fleets that come, and drains one that goes by the provider that it had", async () => {
    const rig = await working(1);
    const [id = ""] = rig.live;
    rig.fleets.configure([{ ...SETTINGS, name: "other" }]);
    expect(rig.fleets.all.map(({ name }) => name)).to.deep.equal(["other", "spot"]);
    await rig.pass(250);
    expect(rig.drained).to.deep.equal([id]);
    rig.worker(id, { presence: "left", isOfUse: false });
    await rig.pass(30_000);
    expect((await rig.answerStops()).slice(0, 1)).to.deep.equal([id]);
    await rig.list([]);
    expect(rig.fleets.detailed(new Turn(1, 1, 1)).fleets.map(({ fleet }) => fleet.name)).to.deep.equal([
      "other",
    ]);
    // Its machine-hours stay on its account, also where the file lacked it when a leader came.
    const { machineMs } = rig.fleets.named("spot") ?? {};
    expect(machineMs).to.be.above(0);
    await rig.restart([]);
    rig.fleets.configure([SETTINGS]);
    expect([rig.fleet.isConfigured, rig.fleet.machineMs]).to.deep.equal([true, machineMs]);
  });

  it("passes the share of a fleet that launches nothing on to the next, the cheapest first", async () => {
    const rig = await FleetRig.open(
      { name: "dear", pricePerHour: 5 },
      { name: "cheap", pricePerHour: 1, max: 2 },
    );
    await rig.haveItems(3);
    for (let polls = 0; polls < 5; polls++) {
      await rig.pass(1_000);
      await rig.launch();
    }
    expect(rig.fleets.all.map(({ name, allocations }) => [name, allocations.size])).to.deep.equal([
      ["dear", 1],
      ["cheap", 2],
    ]);
    await rig.turn((turn) => {
      const decision = { action: "end", target: "cheap", reason: "broken" } as const;
      rig.fleets.steer(turn, { by: "ada", decision }, rig.run);
    });
    for (let polls = 0; polls < 5; polls++) {
      await rig.pass(1_000);
      await rig.launch();
      await rig.list(rig.live.map((allocation) => ({ allocation })));
    }
    expect(rig.live).to.have.length(3);
  });

  it("shows how it stands, and takes limits of an operator; an unknown fleet is refused", async () => {
    const rig = await working(2);
    await rig.turn((turn) => {
      const decision = { action: "scale", fleet: "spot", scale: { max: 1 } } as const;
      const verdict = rig.fleets.steer(turn, { by: "ada", decision }, rig.run);
      expect(verdict).to.have.nested.property("fleet.max", 1);
      const unknown = rig.fleets.steer(
        turn,
        { by: "ada", decision: { action: "resume", fleet: "no" } },
        rig.run,
      );
      expect(unknown).to.deep.include({ kind: "refused", code: "fleet_unknown" });
      const wrong = { action: "scale", fleet: "spot", scale: { min: 3 } } as const;
      expect(rig.fleets.steer(turn, { by: "ada", decision: wrong }, rig.run)).to.have.property(
        "code",
        "fleet_min_over_max",
      );
    });
    await rig.restart();
    await rig.turn((turn) => {
      const [shown] = rig.fleets.detailed(turn).fleets;
      expect(shown?.fleet).to.include({ name: "spot", provider: "exec", joined: 2, max: 1, state: "Active" });
      expect(shown?.facts.join("\n")).to.include("at most 1), each with ").and.include("set by an operator");
    });
  });
});
