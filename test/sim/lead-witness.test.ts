// The witness of leadership in the calm: nobody takes the lease there, but for a leader that has just heard of an older copy, once for each
// machine and epoch that the copy lacks.
import { expect } from "chai";
import { encodeRecord } from "../../src/storage/codec.ts";
import { EPOCH_KEY } from "../../src/storage/keys.ts";
import { epochRow } from "../support/ledger-rows.ts";
import { PowerLossStore } from "../support/power-loss-store.ts";
import { LeadWitness } from "./lead-witness.ts";
import { SimProcess } from "./process.ts";
import { SimWorld } from "./world.ts";

const [STORM_MS, SETTLE_MS] = [1_000, 20_000];

class Scene {
  readonly world = new SimWorld(1);
  readonly witness = new LeadWitness(this.world);
  #epoch = 0;

  constructor() {
    this.witness.share({
      ...{ calmFromMs: STORM_MS, settleMs: SETTLE_MS },
      ...{ believers: () => [], living: () => [], onOlderCopy: () => undefined },
    });
  }

  process(name: string): SimProcess {
    return new SimProcess(this.world, { name, disk: new PowerLossStore(), clockRate: 1, wallOffsetMs: 0 }, 1);
  }

  async pass(ms: number): Promise<void> {
    this.world.after(ms, () => undefined);
    await this.world.step();
  }

  claim(process: SimProcess): void {
    const put = { key: EPOCH_KEY, value: encodeRecord(epochRow, EPOCH_KEY, ++this.#epoch) };
    this.witness.committed(process, { puts: [put], deletes: [], expect: [], durability: "sync" }, true);
  }

  goBack(): void {
    const left = { durable: [], behind: [], rows: [], unheard: [] };
    this.witness.restored(left, "older copy");
  }
}

describe("the witness of leadership", () => {
  const TOO_LATE = /though nothing has happened for long/;

  it("lets a lease be taken in the calm when a leader has just halted over an older copy", async () => {
    const scene = new Scene();
    const [one, other] = [scene.process("c1"), scene.process("c2")];
    scene.goBack();
    await scene.pass(STORM_MS + SETTLE_MS);
    scene.claim(one);
    scene.witness.halted(one, 7);
    await scene.pass(SETTLE_MS);
    scene.claim(other);
    await scene.pass(1);
    expect(() => scene.claim(one)).to.throw(TOO_LATE);
  });

  it("does not let leaders of one machine halt again and again over one older copy", async () => {
    const scene = new Scene();
    const process = scene.process("c1");
    scene.goBack();
    scene.witness.halted(process, 7);
    await scene.pass(STORM_MS + SETTLE_MS + 1);
    scene.witness.halted(process, 7);
    expect(() => scene.claim(process)).to.throw(TOO_LATE);
    scene.goBack();
    scene.witness.halted(process, 7);
    scene.claim(process);
  });

  it("lets one machine halt again when it hears of a later epoch that the copy lacks", async () => {
    const scene = new Scene();
    const process = scene.process("c1");
    scene.goBack();
    scene.witness.halted(process, 7);
    await scene.pass(STORM_MS + SETTLE_MS + 1);
    scene.witness.halted(process, 8);
    scene.claim(process);
  });
});
