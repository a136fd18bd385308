// Leaders whose connection is cut in the middle of commits. `npm run chaos -- postgres` cuts 10,000 commits.
import { expect } from "chai";
import { CommitCampaign } from "./postgres/commit-campaign.ts";
import { usePostgresDatabase } from "../support/postgres-database.ts";

const CUTS = 40;
const SEED = 20_261_119;

describe("Postgres: leaders whose commits are cut", () => {
  const database = usePostgresDatabase();

  it("lose no batch, write none in part, twice or late, and get no epoch twice", async () => {
    const campaign = await CommitCampaign.open({
      seed: SEED,
      url: database.url,
    });
    try {
      while (campaign.cuts < CUTS) await campaign.lead();
    } finally {
      await campaign.close();
    }
    expect(campaign.figures.violations).to.deep.equal([]);
    expect(campaign.figures.outcomes.committed).to.be.greaterThan(CUTS);
  });
});
