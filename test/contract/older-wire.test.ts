// Programs of different wires that meet, over a real listener: whoever is to be updated is named, and nothing was done. The wire
// of 0.1 is its own image of proto/.
import { readFileSync } from "node:fs";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import { expect } from "chai";
import { OperatorService } from "../../src/gen/rollout/v1/run_pb.ts";
import { methodName } from "../../src/transport/errors.ts";
import type { Role } from "../../src/transport/tls/identity.ts";
import { newRunId, TestAuthority } from "../support/certificates.ts";
import { useClosers } from "../support/closers.ts";
import { failureOf } from "../support/rejection.ts";
import type { ListeningCoordinator } from "../support/test-coordinator.ts";
import { newTestCluster, startListeningCoordinator } from "../support/test-coordinator.ts";
import { startTestServer } from "../support/test-server.ts";
import type { Reachable } from "../support/worker-client.ts";
import { beatMessage, workerClient } from "../support/worker-client.ts";
import { incarnationId, workerId } from "../support/world-worker.ts";

const EARLIER = createFileRegistry(
  fromBinary(
    FileDescriptorSetSchema,
    readFileSync(new URL("../e2e/earlier/wire-0.1.binpb", import.meta.url)),
  ),
);

function earlier(name: string): DescService {
  const service = EARLIER.getService(`rollout.v1.${name}`);
  if (service === undefined) throw new Error(`0.1 has no ${name}`);
  return service;
}

type Calls = Readonly<Record<string, (request: object) => Promise<unknown> | AsyncIterable<unknown>>>;

/** Calls the method with a request of nothing, and takes the whole answer. */
async function call(transport: Transport, service: DescService, method: DescMethod): Promise<void> {
  const answer = (createClient(service, transport) as unknown as Calls)[method.localName]?.({});
  if (method.methodKind === "unary") return void (await (answer as Promise<unknown>));
  const messages = (answer as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  while ((await messages.next()).done !== true);
}

describe("programs of different wires", () => {
  const closeLater = useClosers();

  async function clientOf(run: Reachable, role: Role, id?: string): Promise<Transport> {
    const { transport, close } = await workerClient(run, { role, ...(id !== undefined && { id }) });
    closeLater(close);
    return transport;
  }

  async function lead(): Promise<ListeningCoordinator> {
    const listening = await startListeningCoordinator(await newTestCluster());
    closeLater(() => listening.stop());
    return listening;
  }

  it("an operator's program of 0.1 is told by the coordinator to update, whatever it asks", async () => {
    const listening = await lead();
    const client = await clientOf(listening, "operator");
    const service = earlier("RunService");
    expect(service.methods.length).to.be.above(10);
    for (const method of service.methods) {
      const { code, message } = await failureOf(call(client, service, method));
      expect([code, message]).to.deep.equal([
        "request_invalid",
        `the coordinator did not understand rollout.v1.RunService/${method.name}: ` +
          "the program that asks is older than the coordinator, and has to be updated",
      ]);
    }
    expect(listening.audit.map(({ reason, method }) => [reason, method])).to.deep.equal(
      service.methods.map((method) => ["unknown_method", methodName(method)]),
    );
    const stranger = await clientOf(listening, "worker");
    const [first] = service.methods;
    if (first === undefined) return expect.fail("there are methods");
    expect((await failureOf(call(stranger, service, first))).code).to.equal("permission_denied");
  });

  it("an operator's program says that a coordinator of 0.1 has to be updated, and changes nothing there", async () => {
    const service = earlier("RunService");
    const run = { runId: newRunId(), ca: await TestAuthority.make() };
    const done: string[] = [];
    const handlers: Record<string, () => object> = {};
    for (const { localName } of service.methods) handlers[localName] = () => (done.push(localName), {});
    const server = await startTestServer(run, {
      access: Object.fromEntries(service.methods.map((method) => [methodName(method), ["operator"]])),
      routes: (router) => void router.service(service, handlers as object),
    });
    closeLater(() => server.close(0));
    const client = await clientOf({ ...run, server }, "operator");
    for (const method of OperatorService.methods) {
      const { code, message } = await failureOf(call(client, OperatorService, method));
      expect([code, message]).to.deep.equal([
        "request_invalid",
        `the coordinator did not understand ${methodName(method)}: ` +
          `the coordinator at ${server.address} is older than this program, and has to be updated`,
      ]);
    }
    expect(done).to.deep.equal([]);
  });

  it("a worker of 0.1 is served as before", async () => {
    const listening = await lead();
    const named = { id: workerId(1), incarnation: incarnationId(1) };
    const client = await clientOf(listening, "worker", named.id);
    const { beat } = createClient(earlier("HeartbeatService"), client) as unknown as {
      beat: (request: object) => Promise<{ ack: { sequence: bigint } }>;
    };
    expect((await beat({ beat: beatMessage(named) })).ack.sequence).to.equal(1n);
    const operator = createClient(OperatorService, await clientOf(listening, "operator"));
    expect((await operator.listWorkers({})).workers.map((info) => info.workerId)).to.deep.equal([named.id]);
  });
});
