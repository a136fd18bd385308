// The real listener with handlers that count their calls, on a free port of loopback, and everything it has refused.
import type { HandlerContext } from "@connectrpc/connect";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import type { Clock } from "../../../src/base/clock.ts";
import { parseUlidBytes } from "../../../src/base/ids.ts";
import type { RunId, WorkerId } from "../../../src/base/ids.ts";
import { BeatStreamResponseSchema, HeartbeatService } from "../../../src/gen/rollout/v1/heartbeat_pb.ts";
import type { BeatRequest } from "../../../src/gen/rollout/v1/heartbeat_pb.ts";
import type { GetRunResponseSchema } from "../../../src/gen/rollout/v1/run_pb.ts";
import { OperatorService } from "../../../src/gen/rollout/v1/run_pb.ts";
import type { Logger } from "../../../src/observe/log.ts";
import type { AuditEntry } from "../../../src/transport/audit.ts";
import { peerOf, requireWorkerItself } from "../../../src/transport/caller.ts";
import type { TransportLimits } from "../../../src/transport/limits.ts";
import type { RunningServer } from "../../../src/transport/server.ts";
import type { Identity } from "../../../src/transport/tls/identity.ts";
import { newRunId, TestAuthority } from "../../support/certificates.ts";
import { startTestServer } from "../../support/test-server.ts";

export interface TestListener {
  readonly runId: RunId;
  readonly ca: TestAuthority;
  readonly server: RunningServer;
  readonly audit: readonly AuditEntry[];
  /** Callers whose request reached its handler, past every check. */
  readonly served: readonly Identity[];
  /** Resolves when `count` lines have been written. */
  audited(count: number): Promise<void>;
  close(): Promise<void>;
}

export interface TestListenerOptions {
  readonly limits?: Partial<TransportLimits>;
  readonly clock?: Clock;
  readonly log?: Logger;
  /** In place of answering at once. */
  readonly getRun?: (context: HandlerContext) => Promise<MessageInitShape<typeof GetRunResponseSchema>>;
}

export async function startTestListener(options: TestListenerOptions = {}): Promise<TestListener> {
  const run = { runId: newRunId(), ca: await TestAuthority.make() };
  const audit: AuditEntry[] = [];
  const served: Identity[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  const serve = (context: HandlerContext): void => void served.push(peerOf(context).identity);
  const ownBeat = (request: Pick<BeatRequest, "beat">, context: HandlerContext): void => {
    const workerId = parseUlidBytes<WorkerId>(request.beat?.worker?.workerId ?? new Uint8Array());
    if (workerId !== undefined) requireWorkerItself(context, workerId);
    serve(context);
  };
  const { getRun, ...serverOptions } = options;
  const server = await startTestServer(run, {
    ...serverOptions,
    access: {
      "rollout.v1.OperatorService/ListWorkers": ["operator"],
      "rollout.v1.OperatorService/GetRun": ["operator"],
      "rollout.v1.HeartbeatService/Beat": ["worker"],
      "rollout.v1.HeartbeatService/BeatStream": ["worker"],
    },
    audit: (entry) => {
      audit.push(entry);
      for (const waiter of waiting) if (audit.length >= waiter.count) waiter.resolve();
    },
    routes: (router) =>
      router
        .service(OperatorService, {
          listWorkers: (_request, context) => {
            serve(context);
            return {};
          },
          getRun: (_request, context) => {
            serve(context);
            return getRun?.(context) ?? {};
          },
          // Not in the access table, on purpose.
          seal: (_request, context) => {
            serve(context);
            return {};
          },
        })
        .service(HeartbeatService, {
          beat: (request, context) => {
            ownBeat(request, context);
            return {};
          },
          async *beatStream(requests, context) {
            for await (const request of requests) {
              ownBeat(request, context);
              yield create(BeatStreamResponseSchema, { ack: { sequence: request.beat?.sequence ?? 0n } });
            }
          },
        }),
  });
  return {
    ...run,
    server,
    audit,
    served,
    audited: (count) =>
      audit.length >= count
        ? Promise.resolve()
        : new Promise((resolve) => void waiting.push({ count, resolve })),
    close: () => server.close(0),
  };
}

/** A handler that takes as long as it may: until its deadline, its caller or its server ends it. */
export function untilEnded(context: HandlerContext): Promise<MessageInitShape<typeof GetRunResponseSchema>> {
  return new Promise((resolve) => {
    if (context.signal.aborted) resolve({});
    context.signal.addEventListener("abort", () => resolve({}));
  });
}
