// The services of a coordinator that leads, on one router.
import type { ConnectRouter } from "@connectrpc/connect";
import { EnrolmentService } from "../../gen/rollout/v1/enrolment_pb.ts";
import { FleetService } from "../../gen/rollout/v1/fleet_pb.ts";
import { HeartbeatService } from "../../gen/rollout/v1/heartbeat_pb.ts";
import { KeyService } from "../../gen/rollout/v1/keys_pb.ts";
import { ReleaseService } from "../../gen/rollout/v1/release_pb.ts";
import { OperatorService } from "../../gen/rollout/v1/run_pb.ts";
import { WorkService } from "../../gen/rollout/v1/work_pb.ts";
import type { Store } from "../../storage/store.ts";
import type { FleetPorts } from "../fleet/fleets.ts";
import { enrolmentService } from "./enrolment-service.ts";
import type { EnrolmentOptions } from "./enrolment-service.ts";
import { fleetService } from "./fleet-service.ts";
import { heartbeatService } from "./heartbeat-service.ts";
import { keyService } from "./key-service.ts";
import type { Leader } from "./leader.ts";
import { operatorService } from "./operator-service.ts";
import type { Shown } from "./operator-service.ts";
import { releaseService } from "./release-service.ts";
import { workService } from "./work-service.ts";

export function leaderRoutes(
  router: ConnectRouter,
  leader: Leader,
  store: Store,
  {
    clock,
    feed,
    sight,
    fleets,
    ...enrolment
  }: Shown & EnrolmentOptions & { readonly fleets: FleetPorts | undefined },
): void {
  router.service(HeartbeatService, heartbeatService(leader));
  router.service(OperatorService, operatorService(leader, store, { clock, feed, sight }));
  router.service(KeyService, keyService(leader, store, clock));
  router.service(ReleaseService, releaseService(leader, store, clock));
  router.service(FleetService, fleetService(leader, fleets));
  router.service(WorkService, workService(leader, clock));
  router.service(EnrolmentService, enrolmentService(leader, enrolment));
}
