import { expect } from "chai";
import { KEY_NUMBERS_KEY, KEYS_PREFIX, MAIL_PREFIX, STATES_PREFIX } from "../../../../src/storage/keys.ts";
import { failureOf } from "../../../support/rejection.ts";
import { World } from "../../../support/world.ts";
import { successOf } from "../../../support/world-worker.ts";
import type { HeldItem } from "../../../support/world-worker.ts";
import type { ReportedOutcome } from "../../../../src/coordinator/turn/session-frame.ts";

const keyOf = (text: string): string => text.split(" ")[0] ?? "";
/** Longer than the scrub takes for so few rows. */
const SCRUBBED_MS = 30_000;

function successWithState(item: HeldItem): ReportedOutcome {
  return { ...successOf(item), keyed: { basedOn: item.keyed?.commit ?? 0, state: Buffer.from("s") } };
}

/** Two keys with a state, and two items behind the head of one. */
async function keyedWorld(): Promise<World> {
  const world = await World.start({ isChecked: false });
  const worker = await world.worker(1, { slots: 2, credit: 2 });
  await world.submit(["a 1", "b 1"], { keyOf });
  for (const item of [...worker.held]) await worker.report([item], successWithState(item));
  await world.submit(["a 2", "a 3", "a 4"], { keyOf, submission: "01SVBM1SS10N00000000000002" });
  return world;
}

describe("a row of a key", () => {
  for (const [what, prefix, how] of [
    ["damaged key", KEYS_PREFIX, "flipped"],
    ["missing key", KEYS_PREFIX, "gone"],
    ["damaged state", STATES_PREFIX, "flipped"],
    ["missing state", STATES_PREFIX, "gone"],
    ["damaged item behind a head", MAIL_PREFIX, "flipped"],
    ["missing item behind a head", MAIL_PREFIX, "gone"],
  ] as const)
    it(`is named while the run goes on: a ${what}`, async () => {
      const world = await keyedWorld();
      const key = await world.damage(prefix, 0, how);
      await world.watch(SCRUBBED_MS, world.workers);
      const [error] = world.fatal as { readonly code: string; readonly params: { readonly key: string } }[];
      expect(error).to.include({ code: "store_corrupt" });
      expect(error?.params.key).to.equal(how === "gone" ? KEY_NUMBERS_KEY : key);
    });

  for (const how of ["flipped", "gone"] as const)
    it(`is named when a new leader reads it: a key that is ${how}`, async () => {
      const world = await keyedWorld();
      const key = await world.damage(KEYS_PREFIX, 0, how);
      const error = await failureOf(world.lead());
      expect(error.code).to.equal("store_corrupt");
      expect(error.params["key"]).to.equal(how === "gone" ? KEY_NUMBERS_KEY : key);
    });

  it("is not reported where all rows are whole", async () => {
    const world = await keyedWorld();
    await world.watch(SCRUBBED_MS, world.workers);
    expect([world.fatal, world.state.ledger.scrub.isOver]).to.deep.equal([[], true]);
  });
});

describe("a leader of keys that was succeeded", () => {
  it("reads what the next one has written, and is fenced by its epoch alone", async () => {
    const world = await keyedWorld();
    const former = world.state;
    await world.lead();
    const [worker] = world.workers;
    await worker?.rejoin();
    await worker?.ask(2);
    // Items of one key, which the former leader knows by an earlier head.
    const one = (): HeldItem[] => worker?.held.filter(({ text }) => text.startsWith("a")).slice(0, 1) ?? [];
    for (const item of one()) await worker?.report([item], successWithState(item));
    await worker?.ask(2);
    const items = one();
    const place = world.state.keys.table.get("a")?.head?.place;
    await worker?.report(items, { kind: "error", message: "it says no" });
    expect(place).not.to.equal(former.keys.table.get("a")?.head?.place);
    const before = former.keys.pending;
    if (place !== undefined) former.keys.due(place);
    expect(former.keys.pending).to.equal(before);
  });
});
