// How a worker of the smoke comes to be preempted: by metadata servers on loopback that speak as the cloud's does, by the cloud
// itself, or by a SIGTERM that stands for it.
import { AwsMetadataServer, GcpMetadataServer } from "../../test/support/metadata-server.ts";
import type { Member } from "./member.ts";

export type Cloud = "aws" | "gcp";

export interface Preemption {
  /** A worker's settings for it, by the worker's number. */
  settings(worker: number): Readonly<Record<string, string>>;
  /** Sees to it that a worker gets its notice: this one, unless the cloud has a will of its own. */
  announce(worker: number, member: Member): Promise<void>;
  /** The cause that the drain then names. */
  readonly cause: Cloud | "sigterm";
  close(): Promise<void>;
}

/** The time that the cloud leaves a drain: half of its notice. */
export const DRAIN_TARGET_MS: Readonly<Record<Preemption["cause"], number>> = {
  aws: 60_000,
  gcp: 15_000,
  sigterm: 15_000,
};

/** Each worker's machine has a metadata server of its own. */
export async function servedOnLoopback(cloud: Cloud, workers: number): Promise<Preemption> {
  const Server = cloud === "aws" ? AwsMetadataServer : GcpMetadataServer;
  const servers = await Promise.all(Array.from({ length: workers }, () => Server.start()));
  return {
    cause: cloud,
    settings: (worker) => ({
      ROLLOUT_WORKER_PREEMPTION: cloud,
      ROLLOUT_WORKER_METADATA_ADDR: `127.0.0.1:${servers[worker]?.port ?? 0}`,
    }),
    announce: async (worker) => servers[worker]?.preempt(),
    close: async () => void (await Promise.all(servers.map((server) => server.close()))),
  };
}

/** The machines are that cloud's, and it takes one of them away when it likes, or when somebody asks it to. */
export function leftToTheCloud(cloud: Cloud): Preemption {
  return {
    cause: cloud,
    settings: () => ({ ROLLOUT_WORKER_PREEMPTION: cloud }),
    announce: async () => undefined,
    close: async () => undefined,
  };
}

export function simulated(): Preemption {
  return {
    cause: "sigterm",
    settings: () => ({ ROLLOUT_WORKER_PREEMPTION: "none" }),
    announce: (_, member) => member.terminate(),
    close: async () => undefined,
  };
}
