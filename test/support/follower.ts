// A coordinator that follows: the real listener, which refuses every call of every service with who leads, as far as it was told.
import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { failure } from "../../src/base/errors.ts";
import type { ErrorParams } from "../../src/base/errors.ts";
import { ACCESS } from "../../src/coordinator/rpc/leader.ts";
import { EnrolmentService } from "../../src/gen/rollout/v1/enrolment_pb.ts";
import { HeartbeatService } from "../../src/gen/rollout/v1/heartbeat_pb.ts";
import { OperatorService } from "../../src/gen/rollout/v1/run_pb.ts";
import { WorkService } from "../../src/gen/rollout/v1/work_pb.ts";
import type { TestRun } from "./test-server.ts";
import { startTestServer } from "./test-server.ts";

export interface Follower {
  readonly address: string;
  /** Names of the methods that were called. */
  readonly calls: readonly string[];
  /** The leader by its word from now on; it knows none until it is called. `retryAfterMs` is 20 unless said. */
  follow(address: string, epoch: number, retryAfterMs?: number): void;
  close(): Promise<void>;
}

export async function startFollower(run: TestRun): Promise<Follower> {
  const calls: string[] = [];
  let said: ErrorParams<"not_leader"> = { address: "unknown", epoch: "unknown", retry_after_ms: 20 };
  const server = await startTestServer(run, {
    access: ACCESS,
    routes: (router) => {
      for (const service of [EnrolmentService, HeartbeatService, OperatorService, WorkService])
        refuseAll(router, service, (method) => {
          calls.push(method);
          throw failure("not_leader", said);
        });
    },
  });
  return {
    address: server.address,
    calls,
    follow: (address, epoch, retryAfterMs = 20) => {
      said = { address, epoch, retry_after_ms: retryAfterMs };
    },
    close: () => server.close(0),
  };
}

function refuseAll(router: ConnectRouter, service: DescService, refuse: (method: string) => never): void {
  const methods: Record<string, () => unknown> = {};
  for (const { localName, methodKind } of service.methods) {
    const isStream = methodKind === "server_streaming" || methodKind === "bidi_streaming";
    // A generator that breaks before its first message.
    const stream = async function* (): AsyncGenerator<never> {
      yield refuse(localName);
    };
    methods[localName] = isStream ? stream : (): never => refuse(localName);
  }
  router.service(service, methods as never);
}
