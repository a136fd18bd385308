// The smokes as somebody types them. They check their own results; this test checks that they come to their end, in time and
// with nothing left behind, and that a failure is loud.
import { expect } from "chai";
import { concurrentTests } from "../support/concurrent.ts";
import { pace } from "../support/pace.ts";
import { sharedPostgresUrl, SERVER_URL } from "../support/postgres-server.ts";
import { environmentFor } from "../support/rollout-process.ts";
import { runProgram } from "../support/run-program.ts";

const SMOKE = "scripts/smoke-3node.ts";
/** Four times what they allow themselves: here it is a guard against hanging. */
const LIMIT_MIN = 2;
const HA_LIMIT_MIN = 4;
const HA_OK = /^smoke ok: items=360 coordinators=3 workers=3 killed=1 takeover_ms=\d+ seconds=\d+\.\d$/;
const OK = /^smoke ok: items=\d+ steals=[1-9]\d* preempted=1 drain_ms=\d+ seconds=\d+\.\d$/;

describe("a smoke", () => {
  const it = concurrentTests(2);

  for (const cloud of ["aws", "gcp"])
    it(`of a coordinator and three workers passes on a machine that speaks as those of ${cloud} do`, async () => {
      const { code, stdout, stderr } = await runProgram(SMOKE, [cloud], {
        env: { ROLLOUT_SMOKE_MINUTES: String(LIMIT_MIN * pace()) },
      });
      expect(code, stdout + stderr).to.equal(0);
      expect(stdout.trim().split("\n").at(-1)).to.match(OK);
    });

  it("passes with three coordinators over one Postgres, of which the leader is killed", async () => {
    const limit = String(HA_LIMIT_MIN * pace());
    const env = { [SERVER_URL]: await sharedPostgresUrl(), ROLLOUT_SMOKE_MINUTES: limit };
    const { code, stdout, stderr } = await runProgram("scripts/smoke-ha.ts", [], { env });
    expect(code, stdout + stderr).to.equal(0);
    expect(stdout.trim().split("\n").at(-1)).to.match(HA_OK);
  });

  it("fails loudly when a worker cannot start", async () => {
    const env = environmentFor({
      ROLLOUT_SMOKE_CLOUD: "1",
      ROLLOUT_SMOKE_HOSTS: "a,b,c,d",
      ROLLOUT_SMOKE_SSH: "false",
    });
    const { code, stdout, stderr } = await runProgram(SMOKE, ["gcp"], { env });
    expect(code).to.equal(1);
    expect(stderr).to.match(/^smoke failed after \d+\.\d s: on [a-d], .* ended with 1/m);
    expect(stdout).to.not.include("smoke ok");
  });
});
