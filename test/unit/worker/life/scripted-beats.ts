// The other end of a worker's heartbeat, played by the test: every stream that is opened, what came on it, and answers
// with whatever in them. Ends as the real client does, with a row of the table.
import assert from "node:assert/strict";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { AsyncQueue } from "../../../../src/base/async-queue.ts";
import { failure } from "../../../../src/base/errors.ts";
import type { RolloutError } from "../../../../src/base/errors.ts";
import { parseUlid, ulidToBytes } from "../../../../src/base/ids.ts";
import type { StoreId } from "../../../../src/base/ids.ts";
import type { BeatAckSchema, BeatStreamResponse } from "../../../../src/gen/rollout/v1/heartbeat_pb.ts";
import { BeatStreamResponseSchema, BeatVerdict } from "../../../../src/gen/rollout/v1/heartbeat_pb.ts";
import type { HeartbeatOptions } from "../../../../src/worker/life/heartbeat.ts";

type BeatStream = HeartbeatOptions["client"]["beatStream"];
type AckInit = Extract<MessageInitShape<typeof BeatAckSchema>, { readonly $typeName?: never }>;

export class ScriptedStream {
  /** The sequences of the beats that came. */
  readonly received: number[] = [];
  readonly #answers = new AsyncQueue<BeatStreamResponse>(1_000);

  constructor(requests: Parameters<BeatStream>[0], signal: AbortSignal | undefined) {
    signal?.addEventListener("abort", () => this.fail(failure("interrupted", {})));
    void this.#receive(requests);
  }

  get answers(): AsyncIterable<BeatStreamResponse> {
    return this.#answers;
  }

  /** An acknowledgement of a leader of epoch 1, but for what `parts` say. */
  answer(sequence: number, parts: AckInit = {}): void {
    const coordinator = { coordEpoch: 1n, storeId: ulidToBytes(STORE) };
    const ack = { coordinator, sequence: BigInt(sequence), verdict: BeatVerdict.ACCEPTED, ...parts };
    assert(this.#answers.push(create(BeatStreamResponseSchema, { ack })), "the stream is open");
  }

  answerAll(): void {
    const last = this.received.at(-1);
    if (last !== undefined) this.answer(last);
  }

  answerEmpty(): void {
    this.#answers.push(create(BeatStreamResponseSchema));
  }

  close(): void {
    this.#answers.end();
  }

  fail(error: RolloutError): void {
    this.#answers.end(error);
  }

  async #receive(requests: Parameters<BeatStream>[0]): Promise<void> {
    for await (const { beat } of requests) this.received.push(Number(beat?.sequence));
  }
}

const STORE = parseUlid<StoreId>("01JZ0000000000000000000000") ?? assert.fail();

export class ScriptedBeats {
  readonly streams: ScriptedStream[] = [];

  readonly beatStream: BeatStream = (requests, options) => {
    const stream = new ScriptedStream(requests, options?.signal);
    this.streams.push(stream);
    return stream.answers;
  };

  /** The stream that was opened last. */
  get latest(): ScriptedStream {
    const stream = this.streams.at(-1);
    assert(stream !== undefined, "a stream was opened");
    return stream;
  }
}
