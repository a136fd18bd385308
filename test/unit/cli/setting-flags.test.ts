import { expect } from "chai";
import { CaIssue } from "../../../src/commands/ca/issue.ts";
import { CoordinatorRun } from "../../../src/commands/coordinator/run.ts";
import { Explain } from "../../../src/commands/explain.ts";
import { Logs } from "../../../src/commands/logs.ts";
import { Run } from "../../../src/commands/run.ts";
import { Status } from "../../../src/commands/status.ts";
import { Submit } from "../../../src/commands/submit.ts";
import { WorkerDrain } from "../../../src/commands/worker/drain.ts";

const flagsOf = ({ flags }: { readonly flags: object }): string[] => Object.keys(flags);

describe("the flags of settings", () => {
  it("a command that asks the coordinator has those of its way there and of its log", () => {
    const way = ["run-id", "tls-dir", "ca-file", "cert-file", "key-file", "coordinator-addr"];
    for (const command of [Status, Logs, Explain, WorkerDrain]) {
      const own = ["watch", "attempt", "wait"];
      const offered = flagsOf(command).filter((flag) => !own.includes(flag));
      expect(offered).to.have.members([...way, "log-level", "log-format", "config"]);
    }
  });

  it("the limit of a payload is offered where items are given in", () => {
    for (const command of [Submit, Run, CoordinatorRun]) expect(flagsOf(command)).to.include("payload-limit");
  });

  it("the times of a lease and the weight of a coordinator are offered where a store can be shared, and not where it is one's own", () => {
    const shared = ["coordinator-heartbeat-interval", "failover-threshold", "coordinator-weight"];
    expect(flagsOf(CoordinatorRun)).to.include.members(shared);
    expect(flagsOf(Run).filter((flag) => shared.includes(flag))).to.deep.equal([]);
  });

  it("what signs certificates has no flags for a certificate or a log", () => {
    expect(flagsOf(CaIssue)).to.have.members([
      ...["config", "run-id", "tls-dir", "coordinator-addr", "enrolment-lifetime"],
      ...["role", "out", "id", "host"],
    ]);
  });
});
