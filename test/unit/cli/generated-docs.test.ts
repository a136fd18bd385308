import { readFileSync } from "node:fs";
import { expect } from "chai";
import { generateDocs, repositoryFile } from "../../../scripts/generate-docs.ts";
import { ERRORS } from "../../../src/base/error-table.ts";
import { SETTING_KEYS } from "../../../src/config/schema.ts";
import { TOPICS } from "../../../src/observe/events.ts";
import { METRICS } from "../../../src/observe/metrics/metric-table.ts";

describe("the documents that are made from tables", () => {
  for (const path of [
    "docs/errors.md",
    "docs/CONFIGURATION.md",
    "docs/EVENTS.md",
    "docs/MACHINES.md",
    "docs/plugins.md",
    "docs/metrics.md",
  ]) {
    it(`${path} is what scripts/generate-docs.ts makes`, async () => {
      const documents = await generateDocs();
      expect(readFileSync(repositoryFile(path), "utf8")).to.equal(documents.get(path));
    });
  }

  it("leave out no error, no setting, no topic and no metric", async () => {
    const documents = await generateDocs();
    for (const code of Object.keys(ERRORS)) expect(documents.get("docs/errors.md")).to.contain(`\`${code}\``);
    for (const key of SETTING_KEYS) expect(documents.get("docs/CONFIGURATION.md")).to.contain(`\`${key}\``);
    for (const name of Object.keys(METRICS))
      expect(documents.get("docs/metrics.md")).to.contain(`\`${name}\``);
    for (const topic of TOPICS) expect(documents.get("docs/EVENTS.md")).to.contain(`## ${topic}`);
  });
});
