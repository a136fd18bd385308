// The services of a coordinator that follows another: each call is refused with who leads, and nothing of it is looked at.
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { failure } from "../../base/errors.ts";
import type { RolloutError } from "../../base/errors.ts";
import { EnrolmentService } from "../../gen/rollout/v1/enrolment_pb.ts";
import { FleetService } from "../../gen/rollout/v1/fleet_pb.ts";
import { HeartbeatService } from "../../gen/rollout/v1/heartbeat_pb.ts";
import { KeyService } from "../../gen/rollout/v1/keys_pb.ts";
import { ReleaseService } from "../../gen/rollout/v1/release_pb.ts";
import { OperatorService } from "../../gen/rollout/v1/run_pb.ts";
import { WorkService } from "../../gen/rollout/v1/work_pb.ts";
import type { KnownLeader } from "../lead/attendance.ts";

/** All but the one about coordinators, which each of them has. */
const OF_LEADERS: readonly DescService[] = [
  ...[HeartbeatService, OperatorService, KeyService, ReleaseService],
  ...[FleetService, WorkService, EnrolmentService],
];

const UNKNOWN = "unknown";

/** `leader` is undefined while none is known; then it is asked again after `retryAfterMs`. */
export function notLeader(leader: KnownLeader | undefined, retryAfterMs: number): RolloutError {
  return failure("not_leader", {
    address: leader?.address || UNKNOWN,
    epoch: leader?.epoch ?? UNKNOWN,
    retry_after_ms: Math.ceil(retryAfterMs),
  });
}

/** `refusal` is asked at each call. */
export function refusedRoutes(router: ConnectRouter, refusal: () => RolloutError): void {
  for (const service of OF_LEADERS)
    for (const method of service.methods) refuseMethod(router, method, refusal);
}

function refuseMethod(router: ConnectRouter, method: DescMethod, refusal: () => RolloutError): void {
  const refuse = (): never => {
    throw refusal();
  };
  // The refusal of a stream is read first from it.
  const refuseStream = (): AsyncIterable<never> => ({
    [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(refusal()) }),
  });
  switch (method.methodKind) {
    case "unary":
    case "client_streaming":
      return void router.rpc(method as DescMethod & { methodKind: "unary" }, refuse);
    case "server_streaming":
    case "bidi_streaming":
      return void router.rpc(method as DescMethod & { methodKind: "server_streaming" }, refuseStream);
  }
}
