// The messages of operators, held to the rules by which one function makes of them what users see.
import { clone, create, createFileRegistry, ScalarType } from "@bufbuild/protobuf";
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";
import { expect } from "chai";
import { jsonOf, plainOf } from "../../src/client/operator-message.ts";
import { CoordinatorEnvelopeSchema } from "../../src/gen/rollout/v1/common_pb.ts";
import { KeyService } from "../../src/gen/rollout/v1/keys_pb.ts";
import {
  file_rollout_v1_run,
  ItemResultSchema,
  ItemSchema,
  ItemState,
  OperatorService,
  RunSchema,
  RunState,
} from "../../src/gen/rollout/v1/run_pb.ts";
import { OutcomeClass } from "../../src/gen/rollout/v1/work_pb.ts";

/** A million of each in a run, or a copy of rows as they are. */
const OF_BYTES = new Set(["Submit", "ListResults", "BackUp", "ExportKeys", "ImportKeys"]);
const BYTES = [
  ...["GetItemResponse.payload", "GetAttemptLogResponse.log", "GetKeyResponse.state"],
  ...["KeyContents.state", "KeyContents.next", "WaitingItem.payload", "ArmedTimer.event"],
];
/** As workers are told it too: each kind of origin has members of its own. */
const ONE_OF_SEVERAL = "ItemOrigin";
const PLAIN = [
  ...[ScalarType.DOUBLE, ScalarType.UINT32, ScalarType.INT32],
  ...[ScalarType.BOOL, ScalarType.STRING],
];

/** Every message that operators send and get, by name, with those in it. */
function plainMessages(): DescMessage[] {
  const seen = new Set<DescMessage>([CoordinatorEnvelopeSchema, ItemResultSchema]);
  const waiting = [...OperatorService.methods, ...KeyService.methods]
    .filter(({ name }) => !OF_BYTES.has(name))
    .flatMap(({ input, output }): DescMessage[] => [input, output]);
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    if (seen.has(next)) continue;
    seen.add(next);
    waiting.push(...next.fields.flatMap(({ message }) => message ?? []));
  }
  return [...seen].slice(2);
}

/** Why a field is not plain. */
function faultOf(field: DescField): string | undefined {
  const { scalar } = field;
  if (field.oneof !== undefined && field.parent.name !== ONE_OF_SEVERAL) return "one of several";
  if (field.message !== undefined || field.enum !== undefined) return undefined;
  if (scalar === ScalarType.BYTES)
    return BYTES.includes(`${field.parent.name}.${field.name}`) ? undefined : "bytes";
  if (scalar !== undefined && PLAIN.includes(scalar)) return undefined;
  return "a number that is none in JavaScript";
}

describe("the messages of operators", () => {
  it("are plain, but for payloads, logs and states", () => {
    const messages = plainMessages();
    expect(messages.map(({ name }) => name)).to.include.members([
      "Run",
      "WorkerInfo",
      "Item",
      "RetryRequest",
    ]);
    const faults = messages.flatMap(({ fields }) =>
      fields.flatMap((field) => {
        const fault = faultOf(field);
        return fault === undefined ? [] : [`${String(field)}: ${fault}`];
      }),
    );
    expect(faults).to.deep.equal([]);
  });

  it("have in both forms what proto has, without a line elsewhere", () => {
    const file = clone(FileDescriptorProtoSchema, file_rollout_v1_run.proto);
    const run = file.messageType.find(({ name }) => name === "Run");
    const counter = { name: "new_counter", jsonName: "newCounter", number: 99 };
    run?.field.push(
      create(FieldDescriptorProtoSchema, {
        ...counter,
        type: FieldDescriptorProto_Type.DOUBLE,
        label: FieldDescriptorProto_Label.OPTIONAL,
      }),
    );
    const registry = createFileRegistry(file, (name) =>
      file_rollout_v1_run.dependencies.find((each) => `${each.name}.proto` === name),
    );
    const schema = registry.getMessage("rollout.v1.Run");
    if (schema === undefined) throw new Error("no message Run");
    const message = create(schema, { newCounter: 7 });
    expect(plainOf(schema, message)).to.include({ newCounter: 7, done: 0 });
    expect(jsonOf(schema, message)).to.include({ new_counter: 7, done: 0 });
  });

  describe("as values of the library", () => {
    it("have enums by name, undefined for what is absent, and no envelope", () => {
      const run = create(RunSchema, { state: RunState.PAUSED, failedByClass: { timeout: 2, error: 1 } });
      expect(plainOf(RunSchema, run)).to.deep.include({
        ...{ state: "paused", pauseReason: undefined, pending: 0, setAsideItems: [] },
        failedByClass: { error: 1, timeout: 2 },
      });
      expect(Object.keys(plainOf(RunSchema, run).failedByClass)).to.deep.equal(["error", "timeout"]);
      const attempts = [{ attempt: 1, outcome: OutcomeClass.CRASH_SHARED, endedAtMs: 5 }];
      const item = plainOf(ItemSchema, create(ItemSchema, { state: ItemState.DELAYED, attempts }));
      expect(item).to.include({ state: "delayed", id: undefined });
      expect(item.attempts[0]).to.include({ outcome: "crash_shared", endedAtMs: 5, startedAtMs: undefined });
      const { output } = OperatorService.method.pause;
      expect(plainOf(output, create(output, { coordinator: {} }))).to.deep.equal({});
    });

    it("say unknown for a word that this version does not have", () => {
      for (const state of [RunState.UNSPECIFIED, 99 as RunState])
        expect(plainOf(RunSchema, create(RunSchema, { state }))).to.include({ state: "unknown" });
    });
  });

  describe("as objects for programs", () => {
    it("have the names and the order of proto, null for what is absent, and times as text", () => {
      const item = create(ItemSchema, {
        ...{
          item: "ab",
          state: ItemState.FAILED,
          dueAtMs: 1_000,
          error: { class: "timeout", message: "10s" },
        },
        attempts: [{ attempt: 1, outcome: OutcomeClass.ERROR, startedAtMs: 0, endedAtMs: 2_000 }],
      });
      const object = jsonOf(ItemSchema, item);
      expect(Object.keys(object)).to.deep.equal([
        ...[
          "item",
          "id",
          "state",
          "sequence",
          "priority",
          "attempt",
          "charged",
          "max_attempts",
          "lost",
          "max_lost",
        ],
        ...["worker", "ahead", "due_at", "alone", "checkpoint_bytes", "error", "attempts"],
        ...["key", "key_phase", "ahead_in_key", "key_head", "origin"],
      ]);
      expect(object).to.deep.include({
        ...{ id: null, state: "failed", ahead: null, due_at: "1970-01-01T00:00:01.000Z" },
        error: { class: "timeout", message: "10s" },
      });
      expect(object["attempts"]).to.deep.equal([
        {
          ...{ attempt: 1, outcome: "error", message: "", worker: null, plugin_version: null },
          ...{ started_at: "1970-01-01T00:00:00.000Z", duration_ms: null },
          ...{ ended_at: "1970-01-01T00:00:02.000Z", log_bytes: 0 },
        },
      ]);
    });

    it("are the same when they are made from a value of the library", () => {
      const failureMessages = [{ failureClass: "crash", message: "no memory", items: 2, item: "cd" }];
      const run = create(RunSchema, { state: RunState.SEALED, failureMessages, workers: { ready: 1 } });
      const object = jsonOf(RunSchema, run);
      expect(jsonOf(RunSchema, plainOf(RunSchema, run))).to.deep.equal(object);
      expect(object["failure_messages"]).to.deep.equal([
        { class: "crash", message: "no memory", items: 2, attempts: 0, item: "cd" },
      ]);
    });
  });
});
