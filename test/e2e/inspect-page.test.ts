// The page of `rollout inspect` in a real browser: by itself in a network that has loopback alone, fed with news that are made up, and
// beside a real cluster.
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import type { Browser, Page } from "playwright-core";
import { failure } from "../../src/base/errors.ts";
import type { Deed, PageNews, Step } from "../../src/inspector/page-messages.ts";
import { repositoryFile } from "../../scripts/generate-docs.ts";
import { goTo, openPage, startBrowser } from "../support/browser.ts";
import { withCluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { eventually } from "../support/eventually.ts";
import { restartableAddress } from "../support/listeners.ts";
import { madeCluster, madeProgram, programLog, workerId, workerRow } from "../support/made-cluster.ts";
import { PageFixture } from "../support/page-fixture.ts";
import type { ViewReport } from "./inspect/every-view-program.ts";

/** Counts what changes below an element, and in how many goes. */
const COUNT_CHANGES = `(() => {
  window.changes = []; window.goes = 0;
  new MutationObserver((list) => {
    window.goes++;
    window.changes.push(...list.map(({ type, attributeName, target }) => type + " " + attributeName + " " + target.localName));
  }).observe(document.querySelector(".drawing"), { subtree: true, childList: true, attributes: true, characterData: true });
})()`;

interface Changes {
  readonly changes: readonly string[];
  readonly goes: number;
}

async function changesOf(page: Page): Promise<Changes> {
  const seen = await page.evaluate<Changes>("({ changes: window.changes, goes: window.goes })");
  await page.evaluate("window.changes = []; window.goes = 0");
  return seen;
}

/** Paths of the states that are lit. */
async function lit(page: Page): Promise<readonly string[]> {
  return page
    .locator(".drawing .lit")
    .evaluateAll((states: readonly { readonly dataset: DOMStringMap }[]) =>
      states.map(({ dataset }) => dataset["path"] ?? ""),
    );
}

interface DOMStringMap {
  readonly [name: string]: string | undefined;
}

function step(number: number, event: string, from: string, to: string): PageNews {
  const one: Step = {
    number,
    at_ms: 1_000 * number,
    chart: "worker-lifecycle",
    actor: workerId(0),
    event,
    from,
    to,
  };
  return { kind: "steps", steps: [one], dropped: 0 };
}

describe("the page of rollout inspect", () => {
  let browser: Browser;
  before(async () => {
    browser = await startBrowser();
  });
  const it = concurrentTests(2);
  after(() => browser.close());

  async function serving(
    options: Parameters<typeof PageFixture.start>[0],
    work: (fixture: PageFixture) => Promise<void>,
  ): Promise<void> {
    const fixture = await PageFixture.start(options);
    try {
      await work(fixture);
    } finally {
      await fixture.stop();
    }
  }

  it("loads every view with nothing but loopback, calls no other host, and axe finds no fault", async () => {
    const program = repositoryFile("test/e2e/inspect/every-view-program.ts");
    const script = 'ip link set lo up && exec "$0" "$1"';
    const words = [...namespaceFlags(), "sh", "-c", script, process.execPath, program];
    const child = spawn("unshare", words, { stdio: ["ignore", "pipe", "pipe"] });
    const exited = new Promise((resolve) => child.once("exit", resolve));
    const [status, stdout, stderr] = await Promise.all([exited, text(child.stdout), text(child.stderr)]);
    expect(status, stderr).to.equal(0);
    const [first, ...reports] = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as object);
    expect(first).to.deep.equal({ outside: "ENETUNREACH" });
    expect(reports).to.have.length(14);
    for (const report of reports) {
      const { view } = report as ViewReport;
      expect(report, view).to.deep.equal({ view, faults: [], violations: [], tooWideBy: 0 });
    }
  });

  it("weighs less than 150 KB compressed", async () => {
    const files = ["index.html", "page.js", "page.css"].map((name) => repositoryFile(`dist/page/${name}`));
    const bytes = files.map((file) => gzipSync(readFileSync(file)).length);
    expect(bytes.reduce((sum, size) => sum + size)).to.be.below(150_000);
  });

  it("moves a chart by one small update for each transition, is held, and is stepped back and forth", async () => {
    await serving({ whole: () => madeCluster({ workers: 3 }) }, async (fixture) => {
      const { page, faults } = await openPage(browser, fixture.address);
      await goTo(page, "charts", "worker-lifecycle", workerId(0));
      await eventually("it begins as its row says", async () =>
        (await lit(page)).includes("lifecycle.Ready"),
      );
      await page.evaluate(COUNT_CHANGES);
      const moves = [
        ["beat.overdue", "Ready+Alive", "Ready+Suspected", "liveness.Suspected"],
        ["beat.arrived", "Ready+Suspected", "Ready+Alive", "liveness.Alive"],
        ["worker.drain", "Ready+Alive", "Draining+Alive", "lifecycle.Draining"],
      ] as const;
      for (const [at, [event, from, to, path]] of moves.entries()) {
        fixture.tell(step(1_001 + at, event, from, to));
        await eventually(`${path} is lit`, async () => (await lit(page)).includes(path));
        const { changes, goes } = await changesOf(page);
        expect(goes, event).to.equal(1);
        expect(changes.length, changes.join()).to.be.within(2, 6);
        expect(new Set(changes)).to.deep.equal(new Set(["attributes class g"]));
      }
      expect(await lit(page)).to.deep.equal([
        "lifecycle",
        "lifecycle.Draining",
        "liveness",
        "liveness.Alive",
      ]);
      const taken = page.locator(".drawing .transition.taken text");
      expect(await taken.allTextContents()).to.deep.equal(["worker.drain [isCurrent]"]);

      await page.getByRole("button", { name: "Pause" }).click();
      fixture.tell(step(1_004, "worker.left", "Draining+Alive", "Gone+Removed"));
      await page.getByText("held: step 3 of 3, 1 newer one").waitFor();
      await page.getByRole("button", { name: "Step back" }).click();
      expect(await lit(page)).to.include("lifecycle.Ready");
      await page.getByRole("button", { name: "Step back" }).click();
      expect(await lit(page)).to.include("liveness.Suspected");
      await page.getByRole("button", { name: "Step forward" }).click();
      expect(await taken.allTextContents()).to.deep.equal(["beat.arrived [isCurrent]"]);
      await page.getByRole("button", { name: "Go live" }).click();
      expect(await lit(page)).to.include("lifecycle.Gone");

      // Details by keyboard as by pointer.
      await page.locator(".drawing [tabindex='0']").focus();
      await page.keyboard.press("End");
      await page.locator(".details-card").filter({ hasText: "worker.expired" }).waitFor();
      await page.keyboard.press("Escape");
      await page.locator(".details-card").waitFor({ state: "hidden" });
      await page.locator("[data-path='liveness.Failed']").hover();
      await page.locator(".details-card").filter({ hasText: "liveness.Failed (atomic)" }).waitFor();
      expect(faults).to.deep.equal([]);
    });
  });

  it("asks before each deed, says what came of it, and what to do when it went wrong", async () => {
    const perform = async ({ deed }: Deed): Promise<string> => {
      if (deed === "cancel") throw failure("run_cancelled", {});
      return "worker 01K drains";
    };
    await serving({ whole: () => madeCluster({ workers: 3 }), perform }, async (fixture) => {
      const { page } = await openPage(browser, fixture.address);
      await goTo(page, "workers", workerId(0));
      await page.getByRole("button", { name: "Drain", exact: true }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("hands back what it has not started").waitFor();
      // An accident of the keyboard does nothing.
      await page.keyboard.press("Enter");
      await dialog.waitFor({ state: "hidden" });
      expect(fixture.deeds).to.deep.equal([]);
      await page.getByRole("button", { name: "Drain", exact: true }).click();
      await dialog.getByRole("button", { name: "Drain the worker" }).click();
      await dialog.getByText("worker 01K drains").waitFor();
      await dialog.getByRole("button", { name: "Close" }).click();

      await goTo(page, "overview");
      await page.getByRole("button", { name: "Cancel run" }).click();
      await dialog.getByRole("button", { name: "Cancel the run" }).click();
      const { message, hint } = failure("run_cancelled", {});
      await dialog.getByText(message).waitFor();
      await dialog.getByText(hint).waitFor();
      expect(fixture.deeds).to.deep.equal([{ deed: "drain", worker_id: workerId(0) }, { deed: "cancel" }]);
    });
  });

  it("says that its server or the coordinator is away, and recovers by itself", async () => {
    let workers = 3;
    await serving({ whole: () => madeCluster({ workers }) }, async (fixture) => {
      const { page } = await openPage(browser, `${fixture.address}#/workers`);
      await page.getByText("3 workers").waitFor();
      const banner = page.locator(".banner");
      fixture.tell({ kind: "link", connected: false, since_ms: 0, reason: "connection refused" });
      await banner
        .getByText("No coordinator answers since 1 Jan, ")
        .and(banner.getByText("connection refused"))
        .waitFor();
      fixture.tell({ kind: "link", connected: true, since_ms: 0, reason: null });
      await banner.waitFor({ state: "hidden" });
      await fixture.stop();
      await banner.getByText("no word from `rollout inspect`").waitFor();
      expect(await page.locator("tbody tr[data-worker]").count()).to.equal(3);
      workers = 4;
      await fixture.listen();
      await page.getByText("4 workers").waitFor();
      await banner.waitFor({ state: "hidden" });
      fixture.tell({
        kind: "workers",
        anew: false,
        changed: [workerRow(7, { trouble: "no disk" })],
        gone: [workerId(1)],
      });
      await page.getByRole("row").filter({ hasText: "no disk" }).waitFor();
      // Nobody has asked it yet, which is no trouble.
      fixture.tell({ kind: "link", connected: false, since_ms: 0, reason: null });
      fixture.tell({
        kind: "workers",
        anew: false,
        changed: [workerRow(7, { trouble: "no room" })],
        gone: [],
      });
      await page.getByRole("row").filter({ hasText: "no room" }).waitFor();
      expect(await banner.isVisible()).to.equal(false);
      expect(await page.locator("tbody tr[data-worker]:visible").count()).to.equal(4);
    });
  });

  it("shows programs of strangers as text, their actors as a tree, and a log that is stepped back", async () => {
    const whole = (): PageNews[] => [
      ...madeCluster({ workers: 1, listensAt: "127.0.0.1:1" }),
      ...madeProgram(9, "work-item"),
    ];
    await serving({ whole }, async (fixture) => {
      const { page, faults } = await openPage(browser, `${fixture.address}#/programs`);
      await page.getByText('<img src=x onerror="alert(1)">').waitFor();
      expect(await page.locator("main img").count()).to.equal(0);
      await page.getByText("100,000 states; 1,000 at most are drawn").waitFor();
      await page.getByRole("button", { name: "Step back" }).click();
      await page.getByRole("button", { name: "Step back" }).click();
      expect(await lit(page)).to.deep.equal(["Running"]);
      await page.getByRole("button", { name: "Go live" }).click();
      fixture.tell({ kind: "log", program_id: "p1", entries: programLog(12, 5_000), dropped: 40 });
      await page.getByText("40 lines of its log").waitFor();
      await page.locator(".move").filter({ hasText: '"attempt":5011' }).waitFor();
      expect(await page.locator(".move").count()).to.be.below(100);
      // An actor that is no machine has its log all the same.
      await page.getByRole("link", { name: "shipment 8" }).click();
      await page.getByText("shipment 8 has no chart").waitFor();
      expect(faults).to.deep.equal([]);
    });
  });

  it("drains a worker of a real cluster, and finds the next coordinator", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.configure({ "transport.listen_addr": await restartableAddress() });
      await cluster.startCoordinator();
      const [worker] = await cluster.startWorkers(2);
      const id = (await worker?.id()) ?? "";
      const inspect = cluster.launch(["inspect"]);
      const address = await inspect.until("its address", () => inspect.stdout[0]);
      const { page, faults } = await openPage(browser, `${address}#/workers/${id}`);
      await eventually("it is ready", async () => (await lit(page)).includes("lifecycle.Ready"));
      await page.evaluate(COUNT_CHANGES);
      await page.getByRole("button", { name: "Drain", exact: true }).click();
      await page.getByRole("button", { name: "Drain the worker" }).click();
      await page.locator(".answer .done").waitFor();
      await page.getByRole("button", { name: "Close" }).last().click();
      await eventually("it has left", async () => (await lit(page)).includes("lifecycle.Gone"));
      // The list beside the chart may come a little later.
      await page.locator(".move").first().filter({ hasText: "worker.left" }).waitFor();
      const steps = await page.locator(".move").count();
      const { changes, goes } = await changesOf(page);
      expect(goes, changes.join()).to.be.within(1, steps);
      expect(new Set(changes)).to.deep.equal(new Set(["attributes class g"]));

      await goTo(page, "overview");
      await cluster.coordinator.kill();
      await page.locator(".banner").getByText("No coordinator answers since").waitFor();
      await cluster.startCoordinator();
      await page.locator(".banner").waitFor({ state: "hidden" });
      await page
        .getByRole("row")
        .filter({ hasText: cluster.address })
        .filter({ hasText: "leader" })
        .waitFor();
      expect(faults).to.deep.equal([]);
      expect(await inspect.stop()).to.deep.equal({ code: 0, signal: null });
      await page.locator(".banner").getByText("no word from `rollout inspect`").waitFor();
    });
  });
});

/** A network namespace of one's own, as root or with a user namespace. Without either the test fails and says so. */
function namespaceFlags(): string[] {
  for (const flags of [["-n"], ["-r", "-n"]])
    if (spawnSync("unshare", [...flags, "ip", "link", "set", "lo", "up"]).status === 0) return flags;
  throw new Error(
    "this test starts a browser in a network namespace: it needs `unshare` (util-linux), `ip` (iproute2), and root or user namespaces",
  );
}
