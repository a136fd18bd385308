// The contract of a place of partition checkpoints, for each kind of it.
import { expect } from "chai";
import type { CheckpointStore } from "../../src/worker/partitions/checkpoint-store.ts";

const PLACE = "01JZ0000000000000000000000/00a-01JZ0000000000000000000001-0";

/** `open` gives an empty one; each that it gives within a test is the same place, of another worker. */
export function describeCheckpointStore(name: string, open: () => Promise<CheckpointStore>): void {
  describe(`the contract of a checkpoint store: ${name}`, () => {
    it("has nothing under a name that nobody wrote", async () => {
      expect(await (await open()).read(PLACE, 100)).to.equal(undefined);
    });

    it("gives back to others the bytes that were written last", async () => {
      const [one, other] = [await open(), await open()];
      for (const bytes of [Buffer.alloc(300_000, 7), Buffer.from([0, 255, 10]), Buffer.alloc(0)]) {
        await one.write(PLACE, bytes);
        expect(Buffer.from((await other.read(PLACE, 300_000)) ?? [1]).equals(bytes)).to.equal(true);
      }
    });

    it("keeps names apart", async () => {
      const store = await open();
      const second = PLACE.replace(/0$/, "1");
      await Promise.all([store.write(PLACE, Buffer.from("one")), store.write(second, Buffer.from("two"))]);
      const read = [await store.read(PLACE, 10), await store.read(second, 10)];
      expect(read.map((bytes) => Buffer.from(bytes ?? []).toString())).to.deep.equal(["one", "two"]);
    });

    it("refuses to read more than it may", async () => {
      const store = await open();
      await store.write(PLACE, Buffer.alloc(11));
      const reading = await store.read(PLACE, 10).catch((error: unknown) => error);
      expect(reading).to.be.an("error");
    });
  });
}
