import { expect } from "chai";
import { cloudHints } from "../../../../src/worker/preemption/cloud.ts";
import type { CloudChoice } from "../../../../src/worker/preemption/cloud.ts";
import { AwsMetadataServer, GcpMetadataServer } from "../../../support/metadata-server.ts";
import { addressOf, constantRandom, turn, Watching } from "./watching.ts";

const PROBE_MS = 1_000;
const PAUSE_MS = 500;
const SLOW_PAUSE_MS = 30_000;

describe("which cloud is watched", () => {
  let watching: Watching;
  let server: AwsMetadataServer | GcpMetadataServer;

  const watch = (choice: CloudChoice): void => {
    const { clock, log } = watching;
    watching.start(
      cloudHints(choice, { address: addressOf(server), clock, random: constantRandom(0.5), log }),
    );
  };

  const logged = (): string[] =>
    watching.log.lines.map(({ level, fields }) => `${level} ${String(fields["cloud"])}`);

  beforeEach(() => {
    watching = new Watching();
  });

  afterEach(async () => {
    await watching.stop();
    await server.close();
  });

  for (const [cloud, start] of [
    ["aws", () => AwsMetadataServer.start({ clock: watching.clock })],
    ["gcp", () => GcpMetadataServer.start({ clock: watching.clock })],
  ] as const)
    for (const choice of ["auto", cloud] as const)
      it(`is ${cloud} when its server answers and the choice is ${choice}`, async () => {
        server = await start();
        server.preempt();
        watch(choice);
        await watching.over();
        expect(watching.hints).to.have.length(1);
        expect(watching.hints[0]).to.include({ kind: "preemption", cause: cloud });
        expect(logged()).to.deep.equal(choice === "auto" ? [`debug ${cloud}`] : []);
      });

  /** Three quick questions, all without an answer that counts. */
  const askInVain = async (): Promise<void> => {
    for (let pause = 0; pause < 2; pause++) {
      await watching.idle(PAUSE_MS);
      await watching.clock.advance(PAUSE_MS);
    }
    await watching.idle(SLOW_PAUSE_MS);
  };

  it("is asked for slowly when nobody answers, which is said once, until somebody does", async () => {
    server = await AwsMetadataServer.start({ clock: watching.clock });
    const { port } = server;
    const address = addressOf(server);
    await server.close();
    const { clock, log } = watching;
    watching.start(cloudHints("auto", { address, clock, random: constantRandom(0.5), log }));
    await askInVain();
    await clock.advance(SLOW_PAUSE_MS);
    await watching.idle(SLOW_PAUSE_MS);
    expect(logged()).to.deep.equal(["warn undefined"]);

    server = await AwsMetadataServer.start({ clock, port });
    server.preempt();
    await clock.advance(SLOW_PAUSE_MS);
    await watching.over();
    expect(watching.hints[0]).to.include({ kind: "preemption", cause: "aws" });
    expect(logged()).to.deep.equal(["warn undefined", "info aws"]);
  });

  it("is asked for slowly when what answers is no metadata server", async () => {
    server = await GcpMetadataServer.start();
    server.misbehave({ kind: "status", status: 404 });
    watch("auto");
    await askInVain();
    expect(logged()).to.deep.equal(["warn undefined"]);
    expect(watching.isOver).to.equal(false);
  });

  for (const [cloud, start] of [
    ["aws", () => AwsMetadataServer.start({ clock: watching.clock })],
    ["gcp", () => GcpMetadataServer.start({ clock: watching.clock })],
  ] as const)
    for (const choice of ["auto", cloud] as const)
      it(`is heard by ${choice} when the server of ${cloud} takes 5 s to answer, after one warning`, async () => {
        server = await start();
        server.misbehave({ kind: "slow", delayMs: 5_000 });
        server.preempt();
        watch(choice);
        // Time goes on while real packets travel, so slowly beside them that no answer is late by that.
        while (watching.hints.length === 0) {
          for (let turns = 0; turns < 20; turns++) await turn();
          await watching.clock.advance(100);
        }
        expect(watching.hints[0]).to.include({ kind: "preemption", cause: cloud });
        expect(watching.warnings).to.have.length(1);
      });

  it("is found out in time when questions hang", async () => {
    server = await AwsMetadataServer.start({ clock: watching.clock });
    server.preempt();
    server.misbehave({ kind: "hang" }, 2);
    watch("auto");
    await server.asked(2);
    await watching.clock.advance(PROBE_MS);
    await watching.idle(PAUSE_MS);
    await watching.clock.advance(PAUSE_MS);
    await watching.over();
    expect(watching.hints[0]).to.include({ cause: "aws" });
  });

  it("is none when the choice is none, and then nothing is asked", async () => {
    server = await AwsMetadataServer.start();
    watch("none");
    await watching.over();
    expect(server.requests).to.deep.equal([]);
  });

  it("is asked nothing more when the watch ends during the search", async () => {
    server = await AwsMetadataServer.start({ clock: watching.clock });
    server.misbehave({ kind: "hang" });
    watch("auto");
    await server.asked(2);
    await watching.stop();
    expect(server.requests).to.have.length(2);
    expect(watching.log.lines).to.deep.equal([]);
  });
});
