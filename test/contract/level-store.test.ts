import { expect } from "chai";
import { assert } from "../../src/base/assert.ts";
import { systemClock } from "../../src/base/clock.ts";
import { openLevelStore } from "../../src/storage/level/level-store.ts";
import type { Store } from "../../src/storage/store.ts";
import { batchOf, EVERYTHING, putOf, textOf } from "../support/batch.ts";
import { rejectionOf } from "../support/rejection.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";
import { storeContract } from "./store.ts";

describe("on disk", () => {
  const directory = useTemporaryDirectory();
  let opened = 0;
  const open = (): Promise<Store> =>
    openLevelStore({
      path: directory.file(`${opened++}`),
      holderName: "contract suite",
      clock: systemClock,
    });
  storeContract("LevelDB", { open });

  it("freezes a copy of one moment, which may be closed before the store or after it", async () => {
    const store = await open();
    const freeze = async (): Promise<Store> => {
      const frozen = await store.freeze?.();
      assert(frozen !== undefined, "it can be frozen");
      return frozen;
    };
    await store.commit(batchOf({ puts: [putOf("a", "old"), putOf("gone", "old")] }));
    const [frozen, late] = [await freeze(), await freeze()];
    await store.commit(batchOf({ puts: [putOf("a", "new"), putOf("b", "new")], deletes: ["gone"] }));
    const values = await frozen.getMany(["a", "b", "gone"]);
    expect([await frozen.get("a"), ...values].map(textOf)).to.deep.equal(["old", "old", undefined, "old"]);
    const rows = (await frozen.scan(EVERYTHING)).map(({ key, value }) => `${key}=${String(textOf(value))}`);
    expect(rows).to.deep.equal(["a=old", "gone=old"]);
    await frozen.close();
    expect(await rejectionOf(frozen.get("a"))).to.be.an("error");
    expect(textOf(await store.get("a"))).to.equal("new");
    await store.close();
    expect(await rejectionOf(late.get("a"))).to.be.an("error");
    await late.close();
  });
});
