// Opens every view of the page in a browser, in light and dark, on a laptop and a phone, and prints a line of JSON for each: what went
// wrong, what axe finds, and how much wider it is than the window. For a network namespace that has loopback alone.
import { connect } from "node:net";
import axe from "axe-core";
import type { Page } from "playwright-core";
import { goTo, openPage, startBrowser } from "../../support/browser.ts";
import { emptyCluster, itemDigest, madeCluster, madeProgram, workerId } from "../../support/made-cluster.ts";
import { madeRelease } from "./made-release.ts";
import { PageFixture } from "../../support/page-fixture.ts";

export interface ViewReport {
  readonly view: string;
  readonly faults: readonly string[];
  readonly violations: readonly string[];
  readonly tooWideBy: number;
}

const VIEWS = [
  ["overview"],
  ["workers"],
  ["workers", workerId(22)],
  ["items", itemDigest(3)],
  ["charts", "worker-lifecycle", workerId(22)],
  ["programs", "p1"],
];
const LOOKS = [
  { colorScheme: "light", viewport: { width: 1366, height: 850 } },
  { colorScheme: "dark", viewport: { width: 390, height: 844 } },
] as const;

async function reportOn(page: Page, view: string, faults: string[]): Promise<ViewReport> {
  const found = await page.evaluate<{ violations: axe.Result[] }>("axe.run()");
  const violations = found.violations.map(
    ({ id, nodes }) =>
      `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary ?? ""}`).join("; ")}`,
  );
  const tooWideBy = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
  return { view, faults: faults.splice(0), violations, tooWideBy };
}

/** Settles on the code of the error: nothing outside can be reached. */
function outside(): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host: "192.0.2.1", port: 80, timeout: 2_000 });
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "?"));
    socket.on("connect", () => resolve("connected"));
    socket.on("timeout", () => resolve("timeout"));
  });
}

const made = [
  ...madeCluster({ workers: 23, listensAt: "127.0.0.1:8123" }),
  ...[madeRelease(), ...madeProgram(60, "work-item")],
];
let whole = made;
const lines = ["as `rollout explain` says"];
const fixture = await PageFixture.start({
  whole: () => whole,
  explain: () => ({ object: { state: "failed" }, lines }),
});
const browser = await startBrowser();
const print = (report: object): void => void process.stdout.write(`${JSON.stringify(report)}\n`);
try {
  print({ outside: await outside() });
  for (const look of LOOKS) {
    whole = made;
    const { page, faults } = await openPage(browser, fixture.address, look);
    await page.evaluate(axe.source);
    for (const parts of VIEWS) {
      await goTo(page, ...parts);
      await page.locator(`[data-view="${parts[0] ?? ""}"][aria-current]`).waitFor();
      await page
        .locator(parts[0] === "overview" ? ".tile" : ".card:visible")
        .first()
        .waitFor();
      if (parts.length > 1 && parts[0] !== "programs") await page.locator(".drawing .lit").first().waitFor();
      print(await reportOn(page, `${look.colorScheme} ${parts.join("/")}`, faults));
    }
    whole = emptyCluster();
    await goTo(page, "overview");
    await page.reload();
    await page.evaluate(axe.source);
    await page.getByText("No history yet").waitFor();
    print(await reportOn(page, `${look.colorScheme} with nothing yet`, faults));
    await page.context().close();
  }
} finally {
  await browser.close();
  await fixture.stop();
}
