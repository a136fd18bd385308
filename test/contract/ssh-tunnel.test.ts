// Tunnels from hosts back to the coordinator, against a real sshd on loopback: the host is this machine, so its loopback is ours.
import { expect } from "chai";
import { connect, createServer } from "node:net";
import type { AddressInfo, Server } from "node:net";
import { eventually } from "../support/eventually.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";
import { killWorkers, LABELS, launchOf, workerLines } from "./provider.ts";
import { HostRig, useSshd } from "./ssh-rig.ts";

const ONE = "01JZ8Q6T0C5V9W3R7X2Y4B6D90";

/** Says who it is to everybody who connects. */
async function startCoordinator(): Promise<Server> {
  const server = createServer((socket) => socket.on("error", () => undefined).end("the coordinator"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

/** Empty while nobody answers there. */
function saidAt(port: number): Promise<string> {
  return new Promise((resolve) => {
    let said = "";
    const socket = connect(port, "127.0.0.1");
    socket.on("data", (chunk: Buffer) => (said += chunk.toString()));
    socket.on("error", () => undefined).once("close", () => resolve(said));
  });
}

describe("ssh, by a tunnel", () => {
  const directory = useTemporaryDirectory();
  const sshd = useSshd(["a"]);
  let coordinator: Server | undefined;
  const closing: (() => void)[] = [];

  beforeEach(async () => {
    coordinator = await startCoordinator();
  });
  afterEach(() => {
    for (const close of closing.splice(0)) close();
    coordinator?.close();
    killWorkers(directory.path);
  });

  function provider(rig: HostRig, client = rig.client) {
    const { port } = coordinator?.address() as AddressInfo;
    const made = rig.provider({ hosts: ["a"], client, tunnelTo: () => ({ host: "127.0.0.1", port }) });
    closing.push(() => made.close());
    return made;
  }

  const reaches = (port: number) =>
    eventually(
      "the coordinator at the end of the tunnel",
      async () => (await saidAt(port)) === "the coordinator",
    );

  it("gives a worker the coordinator at a port that stays, also when it is cut, and for the next coordinator", async () => {
    const rig = new HostRig(directory, sshd());
    const first = provider(rig);
    expect(await first.launch(launchOf(ONE))).to.have.property("kind", "launched");
    const [line = ""] = workerLines(rig.home);
    const port = Number(/--coordinator-addr 127\.0\.0\.1:(\d+)/.exec(line)?.[1]);
    await reaches(port);
    // The client of the tunnel alone.
    killWorkers(sshd().config);
    await reaches(port);
    first.close();
    await eventually("it is closed", async () => (await saidAt(port)) === "");
    const next = provider(rig);
    await next.list(LABELS);
    await reaches(port);
    await next.stop({ ...LABELS, allocation: ONE, ref: "a", force: true });
    await next.list(LABELS);
    await eventually("it is closed for want of a worker", async () => (await saidAt(port)) === "");
  });

  it("names what a host forbids, and starts nothing there", async () => {
    const rig = new HostRig(directory, sshd());
    const answer = await provider(rig, [...rig.client, "-o", `Port=${sshd().ports[1]}`]).launch(
      launchOf(ONE),
    );
    expect(answer.kind).to.equal("refused");
    expect(JSON.stringify(answer)).to.match(/a: .*forwarding failed.*AllowTcpForwarding/);
    expect(workerLines(rig.home)).to.deep.equal([]);
  });
});
