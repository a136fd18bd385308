// The service of releases in front of the reactor: what it checks, what it answers, and what it reads from the store.
import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { expect } from "chai";
import { RolloutError } from "../../../../src/base/errors.ts";
import { releaseService } from "../../../../src/coordinator/rpc/release-service.ts";
import { specMessageOf } from "../../../../src/client/releases.ts";
import {
  CreateReleaseRequestSchema,
  GetReleaseRequestSchema,
  ReleaseAction,
  ReleaseService,
  ReleaseState,
  SteerReleaseRequestSchema,
} from "../../../../src/gen/rollout/v1/release_pb.ts";
import type { CreateReleaseRequest } from "../../../../src/gen/rollout/v1/release_pb.ts";
import { newRunId } from "../../../support/certificates.ts";
import { callWithoutServer } from "../../../support/call-scope.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";
import { CANDIDATE, CANDIDATE_DIGEST, PLUGIN, releaseId, ReleaseRun, TERMS } from "./release-run.ts";

const runId = newRunId();

describe("the service of releases", () => {
  let run: ReleaseRun;
  let service: ReturnType<typeof releaseService>;
  let context: HandlerContext;

  beforeEach(async () => {
    run = await ReleaseRun.start({ items: 40 });
    await run.worker(1);
    const leader = run.world.leader((input) => {
      void run.world.step(input);
      return true;
    });
    service = releaseService(leader, run.world.store, new VirtualClock());
    context = callWithoutServer(ReleaseService.method.createRelease, {
      runId,
      role: "operator",
      id: runId,
    });
  });

  const asked = (parts: Partial<CreateReleaseRequest> = {}): CreateReleaseRequest =>
    create(CreateReleaseRequestSchema, {
      ...{
        release: releaseId(1),
        spec: specMessageOf(TERMS),
        candidateDigest: CANDIDATE_DIGEST,
      },
      candidate: { name: PLUGIN, version: CANDIDATE.version },
      ...(parts as object),
    });

  async function codeOf(call: unknown): Promise<string> {
    try {
      await call;
      return "answered";
    } catch (error) {
      if (error instanceof RolloutError) return error.code;
      throw error;
    }
  }

  it("takes a spec as it gives one, and answers the same id again", async () => {
    for (let twice = 0; twice < 2; twice++) {
      const { created } = await service.createRelease(asked(), context);
      expect([created?.candidateVersion, created?.stableVersion, created?.itemsLeft]).to.deep.equal([
        "2",
        "1",
        40,
      ]);
    }
    expect(run.world.state.releases.latest?.terms).to.deep.equal(TERMS);
  });

  it("refuses what no client of ours says", async () => {
    const spec = specMessageOf(TERMS);
    const [stage, last] = spec.stages;
    const broken = [
      { release: "no id" },
      { candidateDigest: new Uint8Array(3) },
      { spec: { ...spec, alpha: 0.5 } },
      { spec: { ...spec, metrics: [] } },
      { spec: { ...spec, metrics: [...spec.metrics, ...spec.metrics] } },
      { spec: { ...spec, stages: [last] } },
      { spec: { ...spec, stages: [stage, stage, last] } },
      { spec: { ...spec, stages: [{ ...stage, maxItems: 1 }, last] } },
    ];
    for (const parts of broken)
      expect(
        await codeOf(service.createRelease(asked(parts as Partial<CreateReleaseRequest>), context)),
      ).to.equal("request_invalid");
    expect(run.world.state.releases.latest).to.equal(undefined);
  });

  it("tells of earlier releases from the store, and of unknown ones that they are", async () => {
    await service.createRelease(asked(), context);
    const abort = {
      release: releaseId(1),
      action: ReleaseAction.ABORT,
      reason: "enough",
    };
    await service.steerRelease(create(SteerReleaseRequestSchema, abort), context);
    await service.createRelease(asked({ release: releaseId(2) }), context);
    const { releases = [] } = await service.listReleases({} as never, context);
    expect(releases.map(({ release, state }) => [release, state])).to.deep.equal([
      [releaseId(2), ReleaseState.ROLLING],
      [releaseId(1), ReleaseState.ABORTED],
    ]);
    const get = (release: string) =>
      service.getRelease(create(GetReleaseRequestSchema, { release }), context);
    expect((await get(releaseId(1))).release?.reason).to.equal("enough");
    expect((await get("")).release?.release).to.equal(releaseId(2));
    expect(await codeOf(get(releaseId(9)))).to.equal("release_unknown");
    const steer = (action: ReleaseAction) =>
      service.steerRelease(
        create(SteerReleaseRequestSchema, { release: releaseId(1), action, stage: 1 }),
        context,
      );
    expect((await steer(ReleaseAction.ABORT)).release?.reason, "aborted once more").to.equal("enough");
    expect(await codeOf(steer(ReleaseAction.PROMOTE))).to.equal("release_over");
  });
});
