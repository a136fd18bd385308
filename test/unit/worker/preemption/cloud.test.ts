import { expect } from "chai";
import { cloudHints } from "../../../../src/worker/preemption/cloud.ts";
import type { CloudChoice } from "../../../../src/worker/preemption/cloud.ts";
import { AwsMetadataServer, GcpMetadataServer } from "../../../support/metadata-server.ts";
import { addressOf, constantRandom, Watching } from "./watching.ts";

const PROBE_MS = 1_000;
const PAUSE_MS = 500;

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

  it("is none when nobody answers, which is a line for who looks for it", async () => {
    server = await GcpMetadataServer.start();
    const address = addressOf(server);
    await server.close();
    const { clock, log } = watching;
    watching.start(cloudHints("auto", { address, clock, random: constantRandom(0.5), log }));
    for (let pause = 0; pause < 2; pause++) {
      await watching.idle(PAUSE_MS);
      await clock.advance(PAUSE_MS);
    }
    await watching.over();
    expect(watching.hints).to.deep.equal([]);
    expect(logged()).to.deep.equal(["debug undefined"]);
  });

  it("is none when what answers is no metadata server", async () => {
    server = await GcpMetadataServer.start();
    server.misbehave({ kind: "status", status: 404 });
    watch("auto");
    for (let pause = 0; pause < 2; pause++) {
      await watching.idle(PAUSE_MS);
      await watching.clock.advance(PAUSE_MS);
    }
    await watching.over();
    expect(logged()).to.deep.equal(["debug undefined"]);
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
