import { expect } from "chai";
import { readFileSync } from "node:fs";
import { etcdWords, patroniVariables, rolesIn, storageUrl } from "../../../scripts/smoke/quorum-plan.ts";
import type { QuorumPlan } from "../../../scripts/smoke/quorum-plan.ts";

const PLAN: QuorumPlan = {
  hosts: [1, 2, 3].map((host) => ({
    postgres: 5430 + host,
    patroni: 8000 + host,
    etcd: 2370 + host,
    peers: 2380 + host,
  })),
  passwords: { postgres: "p", replicator: "r", rollout: "o" },
  programs: "/usr/lib/postgresql/15/bin",
};
const NAMES = ["host1", "host2", "host3"];

describe("a plan of a quorum", () => {
  it("names all etcds to each, under the name of its own", () => {
    const words = etcdWords(PLAN, 1);
    const after = (name: string): string | undefined => words[words.indexOf(name) + 1];
    expect(after("--name")).to.equal("host2");
    expect(after("--listen-client-urls")).to.equal("http://127.0.0.1:2372");
    expect(after("--initial-cluster")).to.equal(
      "host1=http://127.0.0.1:2381,host2=http://127.0.0.1:2382,host3=http://127.0.0.1:2383",
    );
  });

  it("gives coordinators a URL of all hosts", () => {
    expect(storageUrl(PLAN)).to.equal(
      "postgres://rollout:o@127.0.0.1:5431,127.0.0.1:5432,127.0.0.1:5433/work",
    );
  });

  it("tells each Patroni by variables that docs/OPERATIONS.md names", () => {
    const page = readFileSync(new URL("../../../docs/OPERATIONS.md", import.meta.url), "utf8");
    for (const name of Object.keys(patroniVariables(PLAN, 0))) expect(page).to.include(`${name}=`);
  });
});

describe("what Patroni says of a quorum", () => {
  const member = (name: string, role: string, state = "running"): object => ({ name, role, state });

  it("is who is the primary, who is waited for, and how many follow", () => {
    const members = [
      member("host1", "replica", "streaming"),
      member("host2", "leader"),
      member("host3", "sync_standby"),
    ];
    expect(rolesIn({ members }, NAMES)).to.deep.equal({ primary: 1, synchronous: 2, following: 2 });
  });

  it("leaves out who does not run", () => {
    const members = [member("host1", "leader", "stopped"), member("host3", "sync_standby", "starting")];
    expect(rolesIn({ members }, NAMES)).to.deep.equal({
      primary: undefined,
      synchronous: undefined,
      following: 0,
    });
    expect(rolesIn({}, NAMES).primary).to.equal(undefined);
  });
});
