// A real browser for tests: Debian's chromium, which says nothing to anybody outside, and a page in it that notes all that goes wrong.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";

const CHROMIUM = "/usr/bin/chromium";
const QUIET = [
  ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
  ...["--disable-component-update", "--disable-sync", "--disable-breakpad", "--disable-dev-shm-usage"],
];

/** To be closed by whoever started it. */
export function startBrowser(): Promise<Browser> {
  if (!existsSync(CHROMIUM))
    throw new Error(
      `not here: ${CHROMIUM} (the page in a real browser); on Debian: apt-get install chromium`,
    );
  return chromium.launch({ executablePath: CHROMIUM, headless: true, args: QUIET });
}

export interface WatchedPage {
  readonly page: Page;
  /** Errors and warnings of the console, errors that nobody caught, and requests to anywhere but the page's own server. */
  readonly faults: string[];
}

/** A page in a window of its own. The window is closed with the browser. */
export async function openPage(
  browser: Browser,
  address: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  const faults: string[] = [];
  const { origin } = new URL(address);
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) faults.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`not caught: ${error.message}`));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith("data:")) faults.push(`asked elsewhere: ${url}`);
  });
  await page.goto(address);
  return { page, faults };
}

/** Another view of the page that is open, by what stands after `#`. */
export async function goTo(page: Page, ...parts: readonly string[]): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(`#/${parts.map(encodeURIComponent).join("/")}`)}`);
}
