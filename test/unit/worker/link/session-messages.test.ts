// Versions of a plugin in the frames of a session.
import { expect } from "chai";
import { create, toBinary } from "@bufbuild/protobuf";
import { AssignmentBatchSchema, HelloSchema, ResultSchema } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { readAssignments, writeHello } from "../../../../src/worker/link/session-messages.ts";
import type { Assigned } from "../../../../src/worker/work/backlog.ts";
import type { Finished } from "../../../../src/worker/work/execution.ts";
import { resultOf } from "../../../../src/worker/work/outbox-record.ts";
import { assignedItem } from "../../../support/assigned-item.ts";
import { itemId } from "../../../support/scripted-coordinator.ts";

describe("versions in a session's frames", () => {
  const read = (parts: object, batch: object = {}): Assigned | undefined => {
    const assignment = { attempt: { itemId: itemId(1), attempt: 1 }, ...parts };
    const message = create(AssignmentBatchSchema, {
      ...{ firstNumber: 1n, plugin: "infer", ...batch, assignments: [assignment] },
    });
    const found = readAssignments(message, 1n, 0);
    return found.kind === "read" ? found.fresh[0] : undefined;
  };

  it("come with an assignment, and so do the numbers that are to be read", () => {
    expect(read({})?.version).to.equal("");
    expect(read({})).not.to.have.property("pointers");
    const pointers = [{ name: "score", pointer: "/score" }];
    const { version, pointers: sought } = read({ pluginVersion: "2" }, { pointers }) ?? {};
    expect([version, sought?.map(({ name, pointer }) => [name, pointer])]).to.deep.equal([
      "2",
      [["score", "/score"]],
    ]);
  });

  it("are stated of what is held, and cost nothing where an assignment named none", () => {
    const bytesOf = (version: string): number => {
      const held = { unstarted: [assignedItem(1, { version })], running: [], finished: [] };
      const message = create(HelloSchema, writeHello(held).message);
      expect(message.held[0]?.pluginVersion).to.equal(version);
      return toBinary(HelloSchema, message).length;
    };
    // One byte for the field, one for the length, and the text.
    expect(bytesOf("2") - bytesOf("")).to.equal(3);
  });

  it("leave a result as long as before where no numbers were asked for", () => {
    const finished: Finished = {
      assigned: assignedItem(1),
      outcome: { kind: "success", output: Buffer.from("1") },
      ...{ checkpoint: new Uint8Array(), outputDigest: new Uint8Array(), log: new Uint8Array() },
      ...{ pluginVersion: "2", startedAtMs: 1, durationMs: 2 },
    };
    const result = resultOf({ ...finished, measures: [{ value: 1 }, {}, { notANumber: true }] }, itemId(2));
    expect(result.measures.map(({ value, notANumber }) => [value, notANumber])).to.deep.equal([
      [1, false],
      [undefined, false],
      [undefined, true],
    ]);
    const plain = resultOf(finished, itemId(2));
    expect(plain.measures).to.deep.equal([]);
    expect(toBinary(ResultSchema, result).length).to.be.greaterThan(toBinary(ResultSchema, plain).length);
  });
});
