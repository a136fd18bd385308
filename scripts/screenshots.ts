// `npm run screenshots`: the pictures of the page in the documents, each view in light and in dark, taken in a real browser of a cluster that is made
// up, so that they are the same each time and show a busy hour.
import { mkdirSync } from "node:fs";
import type { PageNews } from "../src/inspector/page-messages.ts";
import { goTo, openPage, startBrowser } from "../test/support/browser.ts";
import { itemDigest, MADE_AT_MS, madeCluster, madeProgram, workerId } from "../test/support/made-cluster.ts";
import { madeRelease } from "../test/e2e/inspect/made-release.ts";
import { PageFixture } from "../test/support/page-fixture.ts";

const FOLDER = "docs/pictures";
const SCHEMES = ["light", "dark"] as const;
const VIEWPORT = { width: 1280, height: 860 } as const;

interface View {
  readonly parts: readonly string[];
  /** It is all there when this is. */
  readonly shows: string;
  readonly whole?: () => readonly PageNews[];
  /** The part of the page that is the picture; the window unless said. */
  readonly part?: string;
}

const VIEWS: Readonly<Record<string, View>> = {
  overview: { parts: ["overview"], shows: ".events li" },
  release: {
    parts: ["overview"],
    shows: '[aria-label="Release"] .line.candidate',
    whole: () => [...madeCluster({ workers: 60 }), madeRelease()],
    part: '[aria-label="Release"]',
  },
  workers: { parts: ["workers", workerId(22)], shows: ".drawing .lit" },
  items: { parts: ["items", itemDigest(3)], shows: ".drawing .lit" },
  chart: { parts: ["charts", "spot-drain", workerId(22)], shows: ".drawing .lit" },
  programs: {
    parts: ["programs", "p1"],
    shows: ".move",
    whole: () => [
      ...madeCluster({ workers: 60, listensAt: "127.0.0.1:8123" }),
      ...madeProgram(60, "work-item"),
    ],
  },
};

/** As `rollout explain` has it. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  [itemDigest(3)]: [
    "It is number 1204 of the run.",
    "It has failed as crash with attempt 3: exit code 137. These are 3 of 3 allowed failures.",
  ],
  [workerId(22)]: ["It leaves: a notice of gcp. 2 items execute, and 9 s are left for them."],
};

mkdirSync(FOLDER, { recursive: true });
const browser = await startBrowser();
try {
  for (const [name, view] of Object.entries(VIEWS))
    for (const scheme of SCHEMES) await take(name, view, scheme);
} finally {
  await browser.close();
}

async function take(name: string, view: View, colorScheme: (typeof SCHEMES)[number]): Promise<void> {
  const fixture = await PageFixture.start({
    whole: view.whole ?? (() => madeCluster({ workers: 60 })),
    explain: (name) => ({ object: { state: "failed" }, lines: WORDS[name] ?? [] }),
  });
  try {
    const options = { colorScheme, viewport: VIEWPORT, timezoneId: "UTC" } as const;
    const { page, faults } = await openPage(browser, fixture.address, options);
    await page.clock.setFixedTime(MADE_AT_MS);
    await goTo(page, ...view.parts);
    await page.reload();
    await page.locator(view.shows).first().waitFor();
    const shown = view.part === undefined ? page : page.locator(view.part);
    await shown.screenshot({ path: `${FOLDER}/inspect-${name}-${colorScheme}.png` });
    await page.context().close();
    if (faults.length > 0) throw new Error(faults.join("\n"));
  } finally {
    await fixture.stop();
  }
}
