// Clients of a test listener, closed together at the end of each test.
import assert from "node:assert/strict";
import type { Client as Calls } from "@connectrpc/connect";
import { createClient } from "@connectrpc/connect";
import { systemClock } from "../../../src/base/clock.ts";
import type { BeatStreamResponse } from "../../../src/gen/rollout/v1/heartbeat_pb.ts";
import { HeartbeatService } from "../../../src/gen/rollout/v1/heartbeat_pb.ts";
import { OperatorService } from "../../../src/gen/rollout/v1/run_pb.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import { openClient } from "../../../src/transport/client.ts";
import type { Client, ClientOptions } from "../../../src/transport/client.ts";
import type { Role } from "../../../src/transport/tls/identity.ts";
import { newIdentity } from "../../support/certificates.ts";
import type { TestListener } from "./test-listener.ts";

export interface TestClient {
  readonly client: Client;
  readonly run: Calls<typeof OperatorService>;
  readonly heartbeat: Calls<typeof HeartbeatService>;
}

export interface TestClients {
  /** A client with good credentials of this role, unless `options` says otherwise. */
  open(listener: TestListener, role: Role, options?: Partial<ClientOptions>): Promise<TestClient>;
}

/** To be called in a `describe`. */
export function useTestClients(): TestClients {
  const opened: Client[] = [];
  afterEach(() => {
    for (const client of opened.splice(0)) client.close();
  });
  return {
    open: async (listener, role, options = {}) => {
      const client = openClient({
        address: listener.server.address,
        runId: listener.runId,
        credentials: await listener.ca.issue(newIdentity(listener.runId, role)),
        clock: systemClock,
        log: silentLogger,
        ...options,
      });
      opened.push(client);
      return {
        client,
        run: createClient(OperatorService, client.transport),
        heartbeat: createClient(HeartbeatService, client.transport),
      };
    },
  };
}

export interface OpenBeats {
  /** Sends a beat and resolves when it is answered. Rejects with what ends the stream. */
  beat(sequence: bigint): Promise<void>;
  /** Reads on. Rejects with what ends the stream. */
  ended(): Promise<void>;
}

/** A stream of beats that has been answered once. */
export async function openBeats(heartbeat: TestClient["heartbeat"]): Promise<OpenBeats> {
  const queue: bigint[] = [];
  let wake: () => void = () => undefined;
  async function* beats(): AsyncGenerator<{ beat: { sequence: bigint } }> {
    for (;;) {
      const sequence = queue.shift();
      if (sequence === undefined) await new Promise<void>((resolve) => (wake = resolve));
      else yield { beat: { sequence } };
    }
  }
  const answers = heartbeat.beatStream(beats())[Symbol.asyncIterator]();
  const beat = async (sequence: bigint): Promise<void> => {
    queue.push(sequence);
    wake();
    const answer: IteratorResult<BeatStreamResponse, undefined> = await answers.next();
    assert.equal(answer.value?.ack?.sequence, sequence);
  };
  await beat(1n);
  return { beat, ended: async () => void (await answers.next()) };
}
