import { create, toBinary } from "@bufbuild/protobuf";
import { expect } from "chai";
import { SessionRequestSchema } from "../../../src/gen/rollout/v1/work_pb.ts";
import { hasMoreJsonParts, hasMoreParts } from "../../../src/transport/message-parts.ts";

/** The least `max` that a message is not over, up to half its bytes. */
function partsOf(message: Uint8Array): number {
  let max = 0;
  while (hasMoreParts(SessionRequestSchema, message, max)) max++;
  return max;
}

const EMPTY = {
  $typeName: "rollout.v1.HeldAttempt",
  phase: 0,
  incarnation: new Uint8Array(),
  pluginVersion: "",
} as const;

describe("the parts of a message", () => {
  it("are its fields and those of the messages in it", () => {
    const attempt = { itemId: new Uint8Array(32), attempt: 300 };
    const held = [{ attempt, epoch: 7n }, { attempt }];
    const message = create(SessionRequestSchema, {
      ackedAssignment: 2n ** 40n,
      frame: { case: "hello", value: { held } },
    });
    // The number; the hello, two claims, an attempt of two fields in each, and an epoch.
    expect(partsOf(toBinary(SessionRequestSchema, message))).to.equal(1 + 1 + 2 + 2 * 3 + 1);
  });

  it("are counted where they are empty, and where nobody knows them", () => {
    const held = Array.from({ length: 1_000 }, () => EMPTY);
    const message = create(SessionRequestSchema, { frame: { case: "hello", value: { held } } });
    expect(partsOf(toBinary(SessionRequestSchema, message))).to.equal(1_001);
    // Field 111, a number: 0.
    const unknown = Buffer.concat(Array<Buffer>(500).fill(Buffer.from([0xf8, 0x06, 0x00])));
    expect(partsOf(unknown)).to.equal(500);
  });

  it("are counted without end where they are broken, and without fail", () => {
    for (const bytes of [
      [0xff],
      [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f],
      [0x1a, 0x05, 0x0a],
      Array<number>(50).fill(0xff),
    ])
      expect(hasMoreParts(SessionRequestSchema, Uint8Array.from(bytes), 10)).to.equal(false);
  });

  it("are counted in JSON by what stands before each", () => {
    const text = Buffer.from(JSON.stringify({ hello: { held: [{}, {}, {}] } }));
    expect([7, 8].map((max) => hasMoreJsonParts(text, max))).to.deep.equal([true, false]);
  });
});
