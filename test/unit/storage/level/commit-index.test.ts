import { expect } from "chai";
import { systemClock } from "../../../../src/base/clock.ts";
import { CommitIndex } from "../../../../src/storage/level/commit-index.ts";
import type { Operation } from "../../../../src/storage/level/level-writer.ts";
import { useClosers } from "../../../support/closers.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

const MIB = 2 ** 20;

describe("the index of commits", () => {
  const closeLater = useClosers();
  const directory = useTemporaryDirectory();
  let index: CommitIndex;
  /** Numbers that are in the database. */
  let kept: Set<string>;

  beforeEach(async () => {
    kept = new Set();
    const options = {
      directory: directory.path,
      writeBufferBytes: 4 * MIB,
      log: undefined,
      clock: systemClock,
    };
    index = await CommitIndex.open(0, options);
    closeLater(() => index.close());
  });

  /** Returns the operations that the index has added. */
  function write(valueBytes = 0): Operation[] {
    const operations: Operation[] = [{ type: "put", key: "a", value: new Uint8Array(valueBytes) }];
    index.number(operations);
    const added = operations.slice(1);
    for (const { type, key } of added)
      if (type === "put") kept.add(key);
      else kept.delete(key);
    return added;
  }

  it("keeps the numbers that LevelDB's two logs may hold, and no others", () => {
    for (let number = 0; number < 100; number++) write(MIB);
    expect(kept.size).to.be.within(8, 11);
    expect(index.isLong).to.equal(false);
  });

  it("of many small commits is long before the log is, and short again when the log was emptied", () => {
    while (!index.isLong) write();
    expect(kept.size).to.be.within(4_000, 5_000);
    const { last } = index;
    // While the log is being emptied, commits go on.
    for (let number = 0; number < 10; number++) write();
    index.noteEmptied(last);
    const added = write();
    expect(added.length, "no write is made a slow one").to.be.within(2, 1_000);
    for (let number = 0; number < 20; number++) write();
    expect(kept.size).to.equal(10 + 1 + 20);
    expect(index.isLong).to.equal(false);
  });
});
