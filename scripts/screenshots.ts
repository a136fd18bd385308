// `npm run screenshots`: the pictures of the page in the documents, taken in a real browser of a cluster that is made up, so that they
// are the same each time and show a busy hour.
import { mkdirSync } from "node:fs";
import { goTo, openPage, startBrowser } from "../test/support/browser.ts";
import { MADE_AT_MS, madeCluster, workerId } from "../test/support/made-cluster.ts";
import { PageFixture } from "../test/support/page-fixture.ts";

const FOLDER = "docs/pictures";
const PICTURES = [
  { name: "overview", parts: ["overview"], colorScheme: "light", viewport: { width: 1280, height: 860 } },
  {
    name: "chart",
    parts: ["charts", "spot-drain", workerId(22)],
    colorScheme: "dark",
    viewport: { width: 1280, height: 860 },
  },
] as const;

mkdirSync(FOLDER, { recursive: true });
const fixture = await PageFixture.start({ whole: () => madeCluster({ workers: 60 }) });
const browser = await startBrowser();
try {
  for (const { name, parts, colorScheme, viewport } of PICTURES) {
    const options = { colorScheme, viewport, timezoneId: "UTC" } as const;
    const { page, faults } = await openPage(browser, fixture.address, options);
    await page.clock.setFixedTime(MADE_AT_MS);
    await goTo(page, ...parts);
    await page.reload();
    await page
      .locator(name === "overview" ? ".events li" : ".drawing .lit")
      .first()
      .waitFor();
    await page.screenshot({ path: `${FOLDER}/inspect-${name}.png` });
    if (faults.length > 0) throw new Error(faults.join("\n"));
  }
} finally {
  await browser.close();
  await fixture.stop();
}
