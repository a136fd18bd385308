// Submits items to a run when it is asked to.
// Arguments: `producer`, the address of the coordinator, the run, the directory of its certificates, how many items, over how many keys (0:
// they have none).
import { createClient } from "@connectrpc/connect";
import { systemClock } from "../../../src/base/clock.ts";
import type { RunId } from "../../../src/base/ids.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { submitLines } from "../../../src/client/submit.ts";
import type { Line } from "../../../src/client/submit.ts";
import { mockManifest } from "../../../src/config/manifest.ts";
import { taskOf } from "../../../src/config/task.ts";
import { OperatorService } from "../../../src/gen/rollout/v1/run_pb.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import { openClient } from "../../../src/transport/client.ts";
import { loadCredentials } from "../../../src/transport/tls/credential-files.ts";
import { operatorFiles } from "../../../src/transport/tls/host-credentials.ts";
import { keyOf, payloadOf, produce } from "./role.ts";

const [, address = "", run = "", tlsDir = "", count = "0", keys = "0"] = process.argv.slice(2);
const runId = run as RunId;
const [clock, random] = [systemClock, systemRandom];
const credentials = await loadCredentials(operatorFiles(tlsDir), { runId, roles: ["operator"] }, clock);
const { transport } = openClient({ ...credentials, address, runId, clock, log: silentLogger });
const calls = createClient(OperatorService, transport);
// Connected, as the others are.
await calls.getRun({});
await produce(async () => {
  await submitLines(transport, lines(Number(count), Number(keys)), {
    task: taskOf(mockManifest()),
    priority: 0,
    clock,
    random,
  });
  await calls.seal({});
});

async function* lines(items: number, keys: number): AsyncGenerator<Line> {
  for (let n = 0; n < items; n++) {
    const payload = Buffer.from(JSON.stringify(payloadOf(n)));
    yield keys === 0 ? payload : { payload, key: keyOf(n, keys), eventId: "" };
  }
}
