// A worker that reports for an actor what is not that actor's, over a real listener with mutual TLS: refused, told in the audit, and it costs
// the item that it was given and nothing else.
import { expect } from "chai";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { KeyedSchema } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { itemDigits } from "../../../../src/coordinator/ledger/place.ts";
import { STATES_PREFIX, TIMERS_PREFIX } from "../../../../src/storage/keys.ts";
import { prefixRange } from "../../../../src/storage/store.ts";
import { eventually } from "../../../support/eventually.ts";
import { useLedCluster } from "../../../support/led-cluster.ts";
import { ScriptedWorker } from "./scripted-worker.ts";
import { seenRun } from "../../../support/worker-client.ts";

type Said = MessageInitShape<typeof KeyedSchema>;

const NOTHING = new Uint8Array();
const MIB = 2 ** 20;

describe("a hostile worker that has an item of an actor", () => {
  const led = useLedCluster(() => ({ inboxMax: 1_000, budgets: { maxAttempts: 1, maxLost: 5 } }));

  /** It has an item of `lamp/1`; that of `lamp/2` is somebody else's, who is honest. */
  async function given(): Promise<{ hostile: ScriptedWorker; honest: ScriptedWorker }> {
    const items = ["lamp/1", "lamp/2"].map((key) => ({ payload: Buffer.from(`event of ${key}`), key }));
    const submission = { submissionId: new Uint8Array(16).fill(4), taskDigest: new Uint8Array(32).fill(3) };
    await led.operator.run.submit({ ...submission, batchNumber: 1n, items });
    const workers = [new ScriptedWorker(await led.join()), new ScriptedWorker(await led.join())];
    for (const worker of workers) {
      led.closeLater(() => worker.end());
      await worker.open(1, 1);
      await eventually("it has one", () => worker.given.length === 1);
    }
    workers.sort((one, other) => ((one.given[0]?.text ?? "") < (other.given[0]?.text ?? "") ? -1 : 1));
    const [hostile, honest] = workers as [ScriptedWorker, ScriptedWorker];
    return { hostile, honest };
  }

  async function report(worker: ScriptedWorker, keyed: Said): Promise<void> {
    const [item] = worker.given;
    if (item === undefined) throw new Error("it has one");
    const { itemId, attempt } = item;
    await worker.report({ itemId, attempt }, 0n, "done", { basedOn: 0n, state: Buffer.from("{}"), ...keyed });
  }

  /** Lines of the audit: those of the coordinator, and those of its listener. */
  function audited(): unknown[] {
    const own = led.listening.log.lines.filter(({ fields }) => fields["audit"] === true);
    return [...own.map(({ fields }) => fields), ...led.listening.audit];
  }

  const rowsUnder = async (prefix: string): Promise<number> =>
    (await led.cluster.store.scan({ ...prefixRange(prefix), limit: 100 })).length;

  const REFUSED: Readonly<Record<string, readonly [keyed: Said, detail: RegExp]>> = {
    "a child that it has not started": [{ stopped: ["lamp/2"] }, /it stops "lamp\/2", which it has not/],
    "the lane of another actor": [
      { sends: [{ to: "lamp/2\0do", event: NOTHING }] },
      /it sends to "lamp\/2\\u0000do", which is no key/,
    ],
    "a timer more than an actor may have": [
      { timers: Array.from({ length: 65 }, (_, at) => ({ id: `t${at}`, delayMs: 1n, event: NOTHING })) },
      /it has 65 timers, and an actor may have 64/,
    ],
    "a child more than an actor may have": [
      { children: Array.from({ length: 65 }, (_, at) => ({ id: `c${at}`, source: "s", input: NOTHING })) },
      /it has 65 invocations and children/,
    ],
    "a state over its limit": [
      { state: new Uint8Array(2 * MIB) },
      /the state is 2097152 bytes; the limit is/,
    ],
  };
  for (const [what, [keyed, detail]] of Object.entries(REFUSED))
    it(`and names ${what} loses the item alone`, async () => {
      const { hostile, honest } = await given();
      await report(hostile, keyed);
      const [line] = audited() as [Record<string, unknown>];
      expect(line).to.include({ reason: "result_not_its_own", role: "worker", id: hostile.client.worker.id });
      expect(line["item"]).to.equal(itemDigits(hostile.given[0]?.itemId ?? NOTHING));
      expect(line["detail"]).to.match(detail);
      await report(honest, {});
      expect(await seenRun(led.operator.run)).to.include({ done: 1, failed: 1, running: 0 });
      expect([await rowsUnder(STATES_PREFIX), await rowsUnder(TIMERS_PREFIX)]).to.deep.equal([1, 0]);
      expect(audited()).to.have.length(1);
    });

  const TOO_LARGE: Readonly<Record<string, Said>> = {
    "a million timers": {
      timers: Array.from({ length: 1_000_000 }, () => ({ id: "t", delayMs: 1n, event: NOTHING })),
    },
    "a state of 16 MiB": { state: new Uint8Array(16 * MIB) },
  };
  for (const [what, keyed] of Object.entries(TOO_LARGE))
    it(`and says ${what} is not read`, async () => {
      const { hostile, honest } = await given();
      const answer: unknown = await report(hostile, keyed).catch((error: unknown) => error);
      expect(answer).to.include({ code: "overloaded" });
      expect(audited()).to.have.length(1);
      const { id } = hostile.client.worker;
      const [line] = audited() as [{ readonly reason: string; readonly identity: { readonly id: string } }];
      expect([line.reason, line.identity.id]).to.deep.equal(["message_too_large", id]);
      await report(honest, {});
      expect(await seenRun(led.operator.run)).to.include({ done: 1, running: 1 });
    });

  it("and reports on the item of another actor changes nothing", async () => {
    const { hostile, honest } = await given();
    hostile.given.splice(0, 1, ...honest.given);
    await report(hostile, { state: Buffer.from("forged") });
    expect(await seenRun(led.operator.run)).to.include({ done: 0, running: 2, staleReports: 1 });
    expect(await rowsUnder(STATES_PREFIX)).to.equal(0);
    await report(honest, {});
    expect(await seenRun(led.operator.run)).to.include({ done: 1, running: 1 });
  });
});
