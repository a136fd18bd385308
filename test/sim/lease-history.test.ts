// Histories of a lease that could have been and that could not, each told call by call; and one that was recorded of the real lease.
import { expect } from "chai";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import { batchOf, putOf } from "../support/batch.ts";
import { LeaseHistory, NO_LEASE, RecordedLease } from "./lease-history.ts";
import type { LeaseInput, LeaseOutput, LeaseState, SeenLease } from "./lease-history.ts";

const DONE: LeaseOutput = { done: true };
const REFUSED: LeaseOutput = { refused: true };

/** Calls one after the other; those that are begun end later, or never. */
class Story {
  readonly history = new LeaseHistory();

  then(input: LeaseInput, output: LeaseOutput): this {
    this.history.begun(input)(output);
    return this;
  }

  get isPossible(): boolean {
    return this.history.find().kind === "linearizable";
  }
}

const held = (epoch: number, holder: string | null, renewals = 0): LeaseState => {
  return { lease: { epoch, holder, renewals }, epoch };
};
const take = (by: string, seen: LeaseState): LeaseInput => ({ kind: "take", by, seen });
const renew = (by: string, epoch: number): LeaseInput => ({ kind: "renew", by, epoch });
const resign = (by: string, epoch: number): LeaseInput => ({ kind: "resign", by, epoch });
const write = (epoch: number): LeaseInput => ({ kind: "write", epoch });
const restore = (state: LeaseState): LeaseInput => ({ kind: "restore", state });
const see = (lease: SeenLease): [LeaseInput, LeaseOutput] => [{ kind: "see lease" }, { lease }];

/** A leads with epoch 0. */
const aLeads = (): Story => new Story().then(take("a", NO_LEASE), { taken: 0 });

describe("a history of a lease is possible in which", () => {
  const stories: Record<string, () => Story> = {
    "one takes it, renews it, writes, and is followed": () =>
      aLeads()
        .then(renew("a", 0), DONE)
        .then(write(0), DONE)
        .then(...see({ epoch: 0, holder: "a", renewals: 9 }))
        .then(take("b", held(0, "a", 9)), { taken: 1 })
        .then(write(0), REFUSED)
        .then(renew("a", 0), { refused: true, seenEpoch: 1 })
        .then(write(1), DONE),
    "a claim of which nobody heard comes late": () => {
      const story = aLeads();
      story.history.begun(take("b", held(0, "a")));
      return story.then(write(0), DONE).then(write(0), REFUSED);
    },
    "a claim of which nobody heard turns out to have leapt": () => {
      const story = aLeads();
      story.history.begun(take("b", held(0, "a")));
      return story
        .then(write(0), REFUSED)
        .then(...see({ epoch: 65_540, holder: "b", renewals: 0 }))
        .then(take("c", held(65_540, "b")), { taken: 65_541 });
    },
    "a claim of which nobody heard never comes": () => {
      const story = aLeads();
      story.history.begun(take("b", held(0, "a")));
      return story.then(take("c", held(0, "a")), { taken: 1 }).then(write(1), DONE);
    },
    "two claim and one is beaten": () =>
      aLeads()
        .then(take("b", held(0, "a")), { taken: 1 })
        .then(take("c", held(0, "a")), REFUSED),
    "it is resigned, and a write that was on its way lands before the next claim": () =>
      aLeads()
        .then(resign("a", 0), DONE)
        .then(write(0), DONE)
        .then(take("b", held(0, null)), { taken: 1 }),
    "a store comes back without the last renewals": () =>
      aLeads()
        .then(...see({ epoch: 0, holder: "a", renewals: 9 }))
        .then(restore(held(0, "a", 4)), DONE)
        .then(take("b", held(0, "a", 4)), { taken: 65_536 }),
  };
  for (const [name, story] of Object.entries(stories))
    it(name, () => {
      expect(story().isPossible).to.equal(true);
    });
});

describe("a history of a lease is not possible in which", () => {
  const stories: Record<string, () => Story> = {
    "two claims of the same rows are both good": () =>
      aLeads()
        .then(take("b", held(0, "a")), { taken: 1 })
        .then(take("c", held(0, "a")), { taken: 2 }),
    "an epoch is given twice": () => aLeads().then(take("b", held(0, "a")), { taken: 0 }),
    "an epoch is lower than one before": () =>
      new Story().then(restore(held(7, "a")), DONE).then(take("b", held(7, "a")), { taken: 3 }),
    "a deposed leader's write lands": () =>
      aLeads()
        .then(take("b", held(0, "a")), { taken: 1 })
        .then(write(0), DONE),
    "the leader's write is refused and nobody followed": () => aLeads().then(write(0), REFUSED),
    "a deposed leader renews": () =>
      aLeads()
        .then(take("b", held(0, "a")), { taken: 1 })
        .then(renew("a", 0), DONE),
    "a leader is told that it was followed, and was not": () => aLeads().then(renew("a", 0), REFUSED),
    "a leader is told of another epoch than the one that followed": () =>
      aLeads()
        .then(take("b", held(0, "a")), { taken: 1 })
        .then(renew("a", 0), { refused: true, seenEpoch: 2 }),
    "it is taken by one who has not seen the last renewal": () =>
      aLeads()
        .then(...see({ epoch: 0, holder: "a", renewals: 3 }))
        .then(renew("a", 0), DONE)
        .then(take("b", held(0, "a", 3)), { taken: 1 }),
    "it is renewed after it was seen to be resigned": () =>
      aLeads()
        .then(resign("a", 0), DONE)
        .then(...see({ epoch: 0, holder: null, renewals: 0 }))
        .then(renew("a", 0), DONE),
    "an older row is read after a newer one": () =>
      aLeads()
        .then(...see({ epoch: 0, holder: "a", renewals: 3 }))
        .then(...see({ epoch: 0, holder: "a", renewals: 2 })),
    "the row is gone": () =>
      aLeads()
        .then(resign("a", 0), DONE)
        .then(...see(null)),
    "a claim of which nobody heard has two epochs": () => {
      const story = aLeads();
      story.history.begun(take("b", held(0, "a")));
      return story
        .then(...see({ epoch: 65_540, holder: "b", renewals: 0 }))
        .then({ kind: "see epoch" }, { epochRow: 1 });
    },
    "a claim whose fate was seen comes a second time": () => {
      const story = aLeads();
      story.history.begun(take("b", held(0, "a")));
      return story
        .then(...see({ epoch: 1, holder: "b", renewals: 0 }))
        .then(take("c", held(1, "b")), { taken: 2 })
        .then(...see({ epoch: 1, holder: "b", renewals: 0 }));
    },
  };
  for (const [name, story] of Object.entries(stories))
    it(name, () => {
      expect(story().isPossible).to.equal(false);
    });
});

describe("the recorder of a lease", () => {
  it("writes down what was called and answered, so that it can be judged", async () => {
    const [history, store] = [new LeaseHistory(), new MemoryStore()];
    const [a, b] = ["a", "b"].map((holder) => new RecordedLease(history, store, holder));
    if (a === undefined || b === undefined) return expect.fail("there are two");
    const first = await a.take(await a.read());
    if (first.kind !== "taken") throw new Error(first.kind);
    const batch = batchOf({ puts: [putOf("item", "x")], expect: [first.leadership.epochRow] });
    const rows = await b.read();
    await a.renew();
    await b.take(rows);
    await b.take(await b.read());
    await a.renew();
    await history.write(0, () => store.commit(batch));
    await b.resign();
    await a.read();
    expect(history.calls.map(({ input }) => input.kind)).to.deep.equal([
      ...["see lease", "see epoch", "take", "see lease", "see epoch", "renew", "take"],
      ...["see lease", "see epoch", "take", "see lease", "see epoch", "renew", "write"],
      ...["resign", "see lease", "see epoch", "see lease", "see epoch"],
    ]);
    expect(history.find()).to.deep.equal({ kind: "linearizable" });
    // The same batch again would be a fault of the store.
    history.begun({ kind: "write", epoch: 0 })(DONE);
    expect(history.find().kind).to.equal("stuck");
  });
});
