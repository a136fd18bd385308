// A worker with nothing but its certificate: it does no more than it is told to by a test.
import { createHash } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { AsyncQueue } from "../../../../src/base/async-queue.ts";
import type { AttemptSchema } from "../../../../src/gen/rollout/v1/common_pb.ts";
import { OutcomeClass } from "../../../../src/gen/rollout/v1/work_pb.ts";
import type { KeyedSchema, SessionRequestSchema } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { beatMessage } from "../../../support/worker-client.ts";
import type { WorkerClient } from "../../../support/worker-client.ts";

type Request = Exclude<MessageInitShape<typeof SessionRequestSchema>, { readonly $typeName: string }>;
export type AttemptInit = MessageInitShape<typeof AttemptSchema>;

export class ScriptedWorker {
  readonly client: WorkerClient;
  /** Assignments, in order, that it never reported. */
  readonly given: { readonly itemId: Uint8Array; readonly attempt: number; readonly text: string }[] = [];
  readonly frames: string[] = [];
  readonly #requests = new AsyncQueue<Request>(1_000);
  #sequence = 0n;

  constructor(client: WorkerClient) {
    this.client = client;
  }

  async beat(slots = 1): Promise<void> {
    const sequence = ++this.#sequence;
    await this.client.beats.beat({
      beat: beatMessage(this.client.worker, { sequence, slots, takesKeys: true }),
    });
  }

  /** Beats, opens its session and asks for so many items at once. */
  async open(credit: number, slots = 1): Promise<void> {
    await this.beat(slots);
    this.#say({ case: "hello", value: {} });
    // Its stream ends with the test.
    this.#read(credit).catch(() => undefined);
  }

  end(): void {
    this.#requests.end();
  }

  /** A call, so that it is over when it resolves. */
  async report(
    attempt: AttemptInit,
    epoch: bigint,
    text: string,
    keyed?: MessageInitShape<typeof KeyedSchema>,
  ): Promise<void> {
    const output = Buffer.from(text);
    const outputDigest = createHash("sha256").update(output).digest();
    const said = { attempt, epoch, outcome: OutcomeClass.SUCCESS, output, outputDigest };
    const result = { ...said, ...(keyed && { keyed }) };
    await this.client.work.reportResults({ worker: this.client.envelope, results: [result] });
  }

  #say(frame: NonNullable<Request["frame"]>): void {
    this.#requests.push({ worker: this.client.envelope, frame });
  }

  async #read(credit: number): Promise<void> {
    for await (const { frame } of this.client.work.session(this.#requests)) {
      this.frames.push(frame.case ?? "");
      if (frame.case === "verdict") this.#say({ case: "credit", value: { more: credit } });
      if (frame.case !== "assignments") continue;
      for (const { attempt, payload } of frame.value.assignments)
        if (attempt !== undefined) this.given.push({ ...attempt, text: Buffer.from(payload).toString() });
    }
  }
}
