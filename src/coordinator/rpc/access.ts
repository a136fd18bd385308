// Which role may call which method. What is not named here is refused to everybody.
import type { AccessTable } from "../../transport/access.ts";

export const ACCESS: AccessTable = {
  "rollout.v1.HeartbeatService/Beat": ["worker"],
  "rollout.v1.HeartbeatService/BeatStream": ["worker"],
  "rollout.v1.WorkService/Session": ["worker"],
  "rollout.v1.RunService/ListWorkers": ["operator"],
  "rollout.v1.RunService/Submit": ["operator"],
  "rollout.v1.RunService/Seal": ["operator"],
  "rollout.v1.RunService/GetRun": ["operator"],
  "rollout.v1.EnrolmentService/SignWorkerCertificate": ["enrolment", "worker"],
};
