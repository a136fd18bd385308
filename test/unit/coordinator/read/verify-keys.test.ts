// The check at the end of a run, of keys: a row of each kind that is damaged, missing or another one is named.
import { expect } from "chai";
import { verifyLedger } from "../../../../src/coordinator/read/verify-ledger.ts";
import { verifyMail } from "../../../../src/coordinator/read/verify-keys.ts";
import { mailRecord } from "../../../../src/coordinator/keys/key-records.ts";
import type { Damage } from "../../../../src/storage/codec.ts";
import { encodeRecord } from "../../../../src/storage/codec.ts";
import {
  DONE_PREFIX,
  ITEMS_PREFIX,
  KEY_NUMBERS_KEY,
  KEYS_PREFIX,
  MAIL_PREFIX,
  STATES_PREFIX,
} from "../../../../src/storage/keys.ts";
import { isPlace } from "../../../../src/coordinator/ledger/place.ts";
import { World } from "../../../support/world.ts";
import { successOf } from "../../../support/world-worker.ts";

const keyOf = (text: string): string => text.split(" ")[0] ?? "";
/** The items of the key that are not final: its head, and two behind it. */
const OPEN = 3;

/** A key with a state, a head and two items behind that. */
async function keyedWorld(): Promise<World> {
  const world = await World.start({ isChecked: false });
  const worker = await world.worker(1, { credit: 1 });
  await world.submit(["a 1", "a 2", "a 3", "a 4"], { keyOf });
  for (const item of [...worker.held])
    await worker.report([item], { ...successOf(item), keyed: { basedOn: 0, state: Buffer.from("s") } });
  return world;
}

function verify({ store, state: { ledger, keys } }: World): Promise<Damage | undefined> {
  return verifyLedger(store, ledger.tally.numbers, keys.rows.numbers);
}

describe("the check of keys at the end of a run", () => {
  it("finds nothing where all are whole", async () => {
    const world = await keyedWorld();
    expect(await verify(world)).to.equal(undefined);
    expect(await verifyMail(world.store, OPEN)).to.equal(undefined);
  });

  for (const [what, prefix] of [
    ["key", KEYS_PREFIX],
    ["state", STATES_PREFIX],
    ["item behind a head", MAIL_PREFIX],
  ] as const) {
    it(`names a damaged ${what}`, async () => {
      const world = await keyedWorld();
      const key = await world.damage(prefix, 0, "flipped");
      expect(await verify(world)).to.include({ kind: "corrupt", key });
    });

    it(`names a missing ${what}`, async () => {
      const world = await keyedWorld();
      await world.damage(prefix, 0, "gone");
      const damage = await verify(world);
      expect(damage).to.include({ kind: "corrupt", key: KEY_NUMBERS_KEY });
      expect(damage !== undefined && "reason" in damage && damage.reason).to.contain(prefix);
    });
  }

  /** Puts the place of the first row from there into the last row of mail, instead of its own. */
  async function redirect({ store }: World, from: string): Promise<string> {
    const [row] = (await store.scan({ from: MAIL_PREFIX, to: "mail0", limit: 10 })).slice(-1);
    const [other] = await store.scan({ from, to: `${from}~`, limit: 1 });
    const place = other?.key.slice(other.key.indexOf("/") + 1) ?? "";
    if (row === undefined || !isPlace(place)) throw new Error("there is such a row");
    const value = encodeRecord(mailRecord, row.key, place);
    await store.commit({ puts: [{ key: row.key, value }], deletes: [], expect: [], durability: "flush" });
    return row.key;
  }

  it("names a row that names an item that is done", async () => {
    const world = await keyedWorld();
    const key = await redirect(world, DONE_PREFIX);
    expect(await verifyMail(world.store, OPEN)).to.include({ kind: "corrupt", key });
  });

  it("names a row that names the head too, so that one item is named twice and another one never", async () => {
    const world = await keyedWorld();
    const head = world.state.keys.table.get("a")?.head?.place ?? "";
    const key = await redirect(world, `${ITEMS_PREFIX}${head}`);
    expect(await verifyMail(world.store, OPEN)).to.include({ kind: "corrupt", key });
  });

  it("names a row that names an item of another key", async () => {
    const world = await keyedWorld();
    const submission = "01SVBM1SS10N00000000000002";
    await world.submit(["b 1"], { keyOf, submission });
    const other = world.state.keys.table.get("b")?.head?.place ?? "";
    const key = await redirect(world, `${ITEMS_PREFIX}${other}`);
    expect(await verifyMail(world.store, OPEN + 1)).to.include({ kind: "corrupt", key });
  });
});
