import { expect } from "chai";
import { systemClock } from "../../../../src/base/clock.ts";
import type { Clock } from "../../../../src/base/clock.ts";
import { Supervisor } from "../../../../src/compose/local-run/supervisor.ts";
import { eventually } from "../../../support/eventually.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

/** A coordinator that is told to stop and takes its time, until it is told otherwise. Its addresses say how far it is. */
const SLOW = `
const lead = (port) => console.log(JSON.stringify({ kind: "domain", topic: "coordinator_leading", address: "127.0.0.1:" + port }));
process.on("SIGTERM", () => lead(2));
process.on("SIGUSR2", () => (lead(3), process.exit()));
setInterval(() => undefined, 1_000);
lead(process.pid);
`;

/** A coordinator that leads at the address that it is given, unless that is taken; for any port it has one. */
const OBEDIENT = `
const given = process.argv[process.argv.indexOf("--listen-addr") + 1];
const say = (line) => console.log(JSON.stringify(line));
if (given === "127.0.0.1:1") {
  say({ error: { code: "listen_failed", message: "cannot listen", hint: "" } });
  process.exitCode = 3;
} else {
  say({ kind: "domain", topic: "coordinator_leading", address: given.replace(/:0$/, ":2") });
  setInterval(() => undefined, 1_000);
}
`;

describe("the processes of a local run", () => {
  const temporary = useTemporaryDirectory();

  function supervising(program: string, clock: Clock): { supervisor: Supervisor; addresses: string[] } {
    const addresses: string[] = [];
    const supervisor = new Supervisor({
      directory: {
        configFile: temporary.file("rollout.toml"),
        logFile: (name) => Promise.resolve(temporary.file(`${name}.log`)),
      },
      program: {
        executable: process.execPath,
        words: ["-e", program, "--"],
        environment: {},
        workingDirectory: temporary.path,
      },
      ...{ coordinatorWords: [], workerWords: [], clock, say: () => undefined },
      onAddress: async (address) => void addresses.push(address),
    });
    return { supervisor, addresses };
  }

  for (const [where, named, led] of [
    ["at the address that commands were told", "127.0.0.1:4711", "127.0.0.1:4711"],
    ["at another port where somebody else listens there", "127.0.0.1:1", "127.0.0.1:2"],
  ] as const) {
    it(`have their first coordinator ${where}, and are told of it`, async () => {
      const { supervisor, addresses } = supervising(OBEDIENT, systemClock);
      try {
        await supervisor.startCoordinator(named);
        expect(addresses).to.deep.equal([led]);
      } finally {
        supervisor.kill();
      }
    });
  }

  it("leave the coordinator the time that followers and calls in flight may take, one after the other", async () => {
    const clock = new VirtualClock();
    const { supervisor, addresses } = supervising(SLOW, clock);
    try {
      await supervisor.startCoordinator("127.0.0.1:0");
      const pid = Number(addresses[0]?.split(":")[1]);
      const stopped = supervisor.stopCoordinator();
      await eventually("it to be told", async () => addresses.length === 2);
      await clock.advance(10_000);
      process.kill(pid, "SIGUSR2");
      await stopped;
      expect(addresses, "it has ended by itself").to.include("127.0.0.1:3");
    } finally {
      supervisor.kill();
    }
  });
});
