// Which role may call which method. A method that is not named here is refused to everybody.
import type { AccessTable } from "../../transport/access.ts";

export const ACCESS: AccessTable = {
  "rollout.v1.HeartbeatService/Beat": ["worker"],
  "rollout.v1.HeartbeatService/BeatStream": ["worker"],
  "rollout.v1.WorkService/Session": ["worker"],
  "rollout.v1.WorkService/Pull": ["worker"],
  "rollout.v1.WorkService/ReportResults": ["worker"],
  "rollout.v1.RunService/ListWorkers": ["operator"],
  "rollout.v1.RunService/Submit": ["operator"],
  "rollout.v1.RunService/Seal": ["operator"],
  "rollout.v1.RunService/GetRun": ["operator"],
  "rollout.v1.RunService/Pause": ["operator"],
  "rollout.v1.RunService/Resume": ["operator"],
  "rollout.v1.RunService/Cancel": ["operator"],
  "rollout.v1.RunService/Retry": ["operator"],
  "rollout.v1.RunService/ListResults": ["operator"],
  "rollout.v1.RunService/GetItem": ["operator"],
  "rollout.v1.RunService/GetAttemptLog": ["operator"],
  "rollout.v1.RunService/GetWorker": ["operator"],
  "rollout.v1.RunService/DrainWorker": ["operator"],
  "rollout.v1.RunService/Revoke": ["operator"],
  "rollout.v1.RunService/WatchEvents": ["operator"],
  "rollout.v1.EnrolmentService/SignWorkerCertificate": ["enrolment", "worker"],
};
