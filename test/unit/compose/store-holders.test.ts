import { expect } from "chai";
import { failure } from "../../../src/base/errors.ts";
import { LOOKERS, openAwaited } from "../../../src/compose/store-holders.ts";
import { MemoryStore } from "../../../src/storage/memory/memory-store.ts";
import type { Store } from "../../../src/storage/store.ts";
import { failureOf } from "../../support/rejection.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

describe("the database that a coordinator opens", () => {
  const store = new MemoryStore();
  let clock: VirtualClock;
  let holder: string | undefined;
  let opens: number;
  let said: string[];
  let ending: AbortController;

  beforeEach(() => {
    [clock, holder, opens, said, ending] = [new VirtualClock(), undefined, 0, [], new AbortController()];
  });

  function open(): Promise<Store | undefined> {
    return openAwaited(
      async () => {
        opens++;
        if (holder !== undefined)
          throw failure("store_held", { path: "db", holder: `${holder}, pid 7 on host a` });
        return store;
      },
      { clock, tell: (sentence) => void said.push(sentence), signal: ending.signal },
    );
  }

  for (const looker of Object.values(LOOKERS))
    it(`is waited for while \`${looker}\` reads it, which is said once`, async () => {
      holder = looker;
      const opening = open();
      await clock.advance(5_000);
      holder = undefined;
      await clock.advance(1_000);
      expect(await opening).to.equal(store);
      expect(said).to.have.length(1);
      expect(said[0]).to.include(`${looker}, pid 7`);
    });

  it("is not waited for when another coordinator holds it", async () => {
    holder = "rollout coordinator run";
    expect(await failureOf(open())).to.include({ code: "store_held" });
    expect([opens, said]).to.deep.equal([1, []]);
  });

  it("is waited for no longer than a minute", async () => {
    holder = LOOKERS.doctor;
    const opening = failureOf(open());
    await clock.advance(61_000);
    expect((await opening).code).to.equal("store_held");
  });

  it("is not opened by one that was told to stop meanwhile", async () => {
    holder = LOOKERS.doctor;
    const opening = open();
    await clock.advance(1_000);
    holder = undefined;
    ending.abort();
    await clock.advance(1_000);
    expect(await opening).to.equal(undefined);
  });
});
