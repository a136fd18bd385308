// The example of a worker that only makes calls, as a process of its own with a trouble of its own. Its arguments: the coordinator's
// address, a directory with its credentials as `writeCredentials` leaves them, its worker id, its incarnation and the trouble.
// `loses-an-answer`: the first answer with work in it never reaches it, and its beats go on. `executes`: what it is given never ends.
// `only-beats`: it does not ask. It says in a line of standard output when it has come to that.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { workByCalls } from "../../examples/unary-worker.ts";
import { ulidToBytes } from "../../src/base/ids.ts";
import type { IncarnationId, WorkerId } from "../../src/base/ids.ts";
import { HeartbeatService } from "../../src/gen/rollout/v1/heartbeat_pb.ts";
import { WorkService } from "../../src/gen/rollout/v1/work_pb.ts";
import type { PullResponse } from "../../src/gen/rollout/v1/work_pb.ts";

const [address = "", directory = "", workerId = "", incarnation = "", trouble = ""] = process.argv.slice(2);
const file = (name: string): string => readFileSync(join(directory, name), "utf8");
const never = new Promise<never>(() => undefined);

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

const interceptor: Interceptor = (next) => async (request) => {
  const isPull = request.method === WorkService.method.pull;
  if (isPull && trouble === "only-beats") return never;
  const answer = await next(request);
  if (request.method === HeartbeatService.method.beat && trouble === "only-beats") say("beats");
  const isWork = isPull && (answer.message as PullResponse).assignments !== undefined;
  if (!isWork || trouble !== "loses-an-answer") return answer;
  say("has lost it");
  return never;
};

await workByCalls(
  {
    transport: createConnectTransport({
      baseUrl: `https://${address}`,
      httpVersion: "2",
      nodeOptions: {
        ...{ cert: file("cert.pem"), key: file("key.pem"), ca: file("ca.pem") },
        checkServerIdentity: () => undefined,
      },
      interceptors: [interceptor],
    }),
    worker: {
      workerId: ulidToBytes(workerId as WorkerId),
      incarnation: ulidToBytes(incarnation as IncarnationId),
    },
    slots: 1,
    plugin: { name: "mock", version: "1" },
    execute: () => {
      say("executes");
      return never;
    },
  },
  new AbortController().signal,
);
