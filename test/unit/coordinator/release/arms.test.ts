import { createHash } from "node:crypto";
import { expect } from "chai";
import {
  chosenWorkers,
  isInShare,
  seedOf,
} from "../../../../src/coordinator/release/arms.ts";
import type { ReleaseWorker } from "../../../../src/coordinator/release/ports.ts";
import { releaseId } from "./release-run.ts";

const ITEMS = Array.from({ length: 20_000 }, (_, at) =>
  createHash("sha256").update(`item ${at}`).digest(),
);

function chosen(release: string, share: number): ReadonlySet<Uint8Array> {
  const seed = seedOf(release);
  return new Set(ITEMS.filter((id) => isInShare(id, seed, share)));
}

describe("the share of items that a release tries", () => {
  const [first, second] = [releaseId(1), releaseId(2)];

  it("is as large as it is to be", () => {
    for (const share of [0.01, 0.1, 0.5]) {
      const sigma = Math.sqrt(ITEMS.length * share * (1 - share));
      expect(chosen(first, share).size).to.be.closeTo(
        ITEMS.length * share,
        5 * sigma,
      );
    }
    expect(chosen(first, 1).size).to.equal(ITEMS.length);
  });

  it("only gets more when it grows", () => {
    const larger = chosen(first, 0.5);
    for (const id of chosen(first, 0.1)) expect(larger.has(id)).to.equal(true);
  });

  it("is another one for another release, whatever the first one was", () => {
    const [one, other] = [chosen(first, 0.1), chosen(second, 0.1)];
    const both = [...one].filter((id) => other.has(id)).length;
    expect(both / ITEMS.length).to.be.closeTo(0.01, 0.004);
  });
});

describe("the workers that get the candidate alone", () => {
  const workers = (...ids: string[]): ReleaseWorker[] =>
    ids.map((id) => ({ id, plugins: [] }));
  const all = workers("a", "b", "c", "d", "e");
  const choose = (
    able: readonly ReleaseWorker[],
    count: number,
    ready = able.length,
  ): string[] =>
    [...chosenWorkers(releaseId(1), able, { count, ready })].sort();

  it("are never all that are ready", () => {
    expect(choose(all, 5)).to.have.length(4);
    expect(choose(workers("a"), 1)).to.deep.equal([]);
    expect(choose(workers("a"), 1, 2)).to.deep.equal(["a"]);
  });

  it("stay the same when others come and go, and a larger number only adds", () => {
    const [one] = choose(all, 1);
    const two = choose(all, 2);
    expect(two).to.include(one);
    const gone = all.filter(({ id }) => !two.includes(id)).slice(1);
    expect(
      choose(
        all.filter((worker) => !gone.includes(worker)),
        2,
      ),
    ).to.deep.equal(two);
  });
});
