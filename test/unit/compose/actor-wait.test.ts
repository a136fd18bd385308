import { create } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { expect } from "chai";
import { failure } from "../../../src/base/errors.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { untilActor } from "../../../src/compose/actor-wait.ts";
import type { WaitOptions } from "../../../src/compose/actor-wait.ts";
import type { GetKeyRequest } from "../../../src/gen/rollout/v1/keys_pb.ts";
import { GetKeyRequestSchema, GetKeyResponseSchema } from "../../../src/gen/rollout/v1/keys_pb.ts";
import { GetRunResponseSchema, RunState } from "../../../src/gen/rollout/v1/run_pb.ts";
import { readActorState, writeActorState } from "../../../src/runtime/actor-state.ts";
import { failureOf } from "../../support/rejection.ts";
import { settle } from "../../support/settle.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

type Answer = MessageInitShape<typeof GetKeyResponseSchema> | Error;

/** Answers are taken one after the other; a call that finds none waits for the next. */
class Coordinator {
  readonly asked: GetKeyRequest[] = [];
  readonly #answers: Answer[] = [];
  #wake: () => void = () => undefined;
  runState: RunState = RunState.OPEN;

  say(...answers: Answer[]): void {
    this.#answers.push(...answers);
    this.#wake();
  }

  readonly keyCalls = {
    getKey: async (
      request: MessageInitShape<typeof GetKeyRequestSchema>,
      { signal }: { readonly signal?: AbortSignal } = {},
    ) => {
      this.asked.push(create(GetKeyRequestSchema, request));
      while (this.#answers.length === 0) {
        if (signal?.aborted === true) throw failure("interrupted", {});
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
          signal?.addEventListener("abort", () => resolve());
        });
      }
      const answer = this.#answers.shift();
      if (answer instanceof Error) throw answer;
      return create(GetKeyResponseSchema, answer ?? {});
    },
  };

  readonly calls = {
    getRun: async () => create(GetRunResponseSchema, { run: { state: this.runState } }),
  };
}

function inState(
  value: string,
  more: { commit?: number; status?: string; items?: number; isOver?: boolean } = {},
): Answer {
  const { commit = 1, status = "active", items = 0, isOver = false } = more;
  const snapshot = { status, value, context: {} };
  const state = writeActorState({ type: "order", version: 1, events: 1, tags: [], snapshot });
  return {
    key: { key: "order/1", stateCommit: commit, items },
    state,
    after: `${commit}.going`,
    end: isOver,
  };
}

describe("waiting for an actor", () => {
  let clock: VirtualClock;
  let coordinator: Coordinator;

  beforeEach(() => {
    [clock, coordinator] = [new VirtualClock(), new Coordinator()];
  });

  const until = (value: string, options: Partial<WaitOptions> = {}): Promise<string> =>
    untilActor(
      coordinator,
      "order/1",
      ({ state }) => {
        const found = state && readActorState(state)?.snapshot.value;
        return found === value ? value : undefined;
      },
      { clock, random: seededRandom(1), ...options },
    );

  it("ends with the first wanted state, whether it is there already or comes later", async () => {
    coordinator.say(
      failure("key_unknown", { key: "order/1" }),
      inState("cart"),
      inState("paid", { commit: 2 }),
    );
    expect(await until("paid")).to.equal("paid");
    expect(coordinator.asked.map(({ after }) => after)).to.deep.equal(["", "0", "1.going"]);
  });

  it("does not count the present state where the wanted one is to come", async () => {
    coordinator.say(
      inState("paid", { commit: 4 }),
      inState("cart", { commit: 5 }),
      inState("paid", { commit: 6 }),
    );
    expect(await until("paid", { sinceCommit: 4 })).to.equal("paid");
    expect(coordinator.asked).to.have.length(3);
  });

  it("rejects for an actor that a failed event parks", async () => {
    const error = { class: "error", message: "it burns" };
    coordinator.say({ key: { key: "order/1", parkedBy: "failed", error }, after: "1.failed" });
    const { code, message } = await failureOf(until("paid"));
    expect([code, message.includes("error: it burns")]).to.deep.equal(["actor_parked", true]);
  });

  it("rejects for a final actor, unless events of it wait", async () => {
    coordinator.say(
      inState("gone", { status: "done", items: 1 }),
      inState("gone", { status: "done", commit: 2 }),
    );
    const { code, message } = await failureOf(until("paid"));
    expect([code, message.includes("final, in gone")]).to.deep.equal(["actor_ended", true]);
    expect(coordinator.asked).to.have.length(2);
  });

  it("rejects in a run that is over, also for an actor that does not exist", async () => {
    coordinator.say(inState("cart", { isOver: true }));
    expect((await failureOf(until("paid"))).code).to.equal("actor_ended");
    coordinator.say(failure("key_unknown", { key: "order/1" }));
    coordinator.runState = RunState.COMPLETE;
    expect((await failureOf(until("paid"))).code).to.equal("actor_ended");
  });

  it("ends after its time, and names the actor's state", async () => {
    coordinator.say(inState("cart"));
    const waiting = failureOf(until("paid", { timeoutMs: 30_000 }));
    await settle();
    await clock.advance(30_000);
    const { code, message } = await waiting;
    expect([code, message.includes("within 30 s"), message.includes("in cart")]).to.deep.equal([
      "actor_not_there_yet",
      true,
      true,
    ]);
    expect(clock.armed).to.equal(0);
  });

  it("goes on while the coordinator is away, and ends with an error that waiting does not end", async () => {
    const told: (string | undefined)[] = [];
    const away = failure("coordinator_silent", { address: "here:1" });
    coordinator.say(away, away, inState("paid"));
    const waiting = until("paid", { onTrouble: (error) => told.push(error?.code) });
    while (coordinator.asked.length < 3) {
      await settle();
      await clock.advance(5_000);
    }
    expect([await waiting, told]).to.deep.equal(["paid", ["coordinator_silent", undefined]]);
    coordinator.say(failure("permission_denied", { who: "a worker", method: "GetKey" }));
    expect((await failureOf(until("paid"))).code).to.equal("permission_denied");
  });
});
