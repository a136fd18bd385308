// Durable actors by the commands: events are sent, a worker and the coordinator are killed with -9 between them, other code is tried on
// what is there and goes out beside the old.
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { repositoryFile } from "../../scripts/generate-docs.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { eventually } from "../support/eventually.ts";

interface ActorLine {
  readonly key: string;
  readonly value: string;
  readonly events: number;
  readonly state_version: number;
  readonly context: { readonly cents: number };
  readonly parked_by: string | null;
  readonly error: { readonly message: string } | null;
}

/** Enough that each of two workers is the owner of some. */
const ORDERS = 12;

async function send(cluster: Cluster, order: number, event: object, ...more: string[]): Promise<void> {
  const words = ["actor", "send", String(order), JSON.stringify(event), "--plugin", "order.toml", ...more];
  const { code, stderr } = await cluster.run(...words);
  expect(code, stderr).to.equal(0);
}

/** The event to all orders; each call sends others. */
async function sendAll(cluster: Cluster, eventOf: (order: number) => object): Promise<void> {
  sent++;
  const orders = Array.from({ length: ORDERS }, (_, at) => at + 1);
  const events = orders.map((order) => ({ order, id: `${sent}`, ...eventOf(order) }));
  const added = await cluster.submit(
    events,
    ...["--plugin", "order.toml", "--key-field", "order", "--event-id-field", "id"],
  );
  expect(added).to.include({ added: ORDERS });
}

let sent = 0;

async function actors(cluster: Cluster, ...more: string[]): Promise<ActorLine[]> {
  const { stdout } = await cluster.run("actor", "list", "--json", ...more);
  return stdout
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as ActorLine);
}

function untilAll(cluster: Cluster, what: string, is: (actor: ActorLine) => boolean): Promise<true> {
  return eventually(what, async () => {
    const all = await actors(cluster);
    return all.length === ORDERS && all.every(is) ? true : undefined;
  });
}

/** Order 3 is paid by its second event. */
async function isLookedAt(cluster: Cluster): Promise<void> {
  const objects = async (...words: string[]): Promise<Record<string, unknown>[]> => {
    const { code, stdout, stderr } = await cluster.run("actor", ...words, "--json");
    expect(code, stderr).to.equal(0);
    return stdout
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  };
  const history = await objects("history", "order/3");
  expect(history.map(({ event, value }) => [(event as { type: string }).type, value])).to.deep.equal([
    ["pay", "paid"],
    ["add", "cart"],
  ]);
  expect(Object.keys(history[0] ?? {})).to.deep.equal([
    "item",
    "at",
    "event",
    "from",
    "value",
    "status",
    "tags",
  ]);
  const exported = await objects("export", "--type", "order");
  expect(exported).to.have.length(ORDERS);
  expect(Object.keys(exported[0] ?? {})).to.deep.equal([
    ...["key", "type", "value", "status", "tags", "context", "output", "events", "state_version", "pending"],
    ...["parked_by", "timers", "children"],
  ]);
  expect(await objects("timers", "order/3")).to.deep.equal([]);
  expect(await objects("pause", "order/3")).to.deep.equal([{ steered: 1 }]);
  expect((await objects("list", "--parked")).map(({ key }) => key)).to.deep.equal(["order/3"]);
  const unready = [
    "send",
    "order/3",
    '{"type":"add","cents":0}',
    "--plugin",
    "order.toml",
    "--wait",
    "tag:none",
  ];
  const waited = await cluster.run("actor", ...unready, "--timeout", "1s");
  expect([waited.code, waited.stderr]).to.satisfy(
    ([code, said]: [number, string]) => code === 1 && said.includes("it is in paid"),
    "what is paused does not come to what is waited for",
  );
  await objects("resume", "order/3");
  const event = ["send", "order/3", '{"type":"add","cents":0}', "--id", "again", "--plugin", "order.toml"];
  const [first] = await objects(...event, "--wait", "paid");
  expect(first).to.include({ known: false, value: "paid" });
  expect((await objects(...event, "--wait", "paid"))[0]).to.include({ known: true, value: "paid" });
  // Its id is enough where the plugin has one type, and the answer has its whole name.
  const [, , ...rest] = event;
  expect(await objects("send", "3", ...rest)).to.deep.equal([{ actor: "order/3", known: true }]);
  const board = cluster.launch(["actor", "watch", "order", "--json"]);
  await eventually("the board to be told", () => (board.stdout.length > 0 ? true : undefined));
  await board.stop();
  expect(JSON.parse(board.stdout[0] ?? "")).to.deep.include({
    states: [{ value: "paid", actors: ORDERS, final: 0 }],
    parked: [],
  });
}

/** The second version: an order that is paid is packed before it is shipped. `migrates`: states of the first become its own. */
function writeSecond(cluster: Cluster, { migrates }: { readonly migrates: boolean }): void {
  const source = readFileSync(cluster.file("order.ts"), "utf8");
  const changed = source.replaceAll("paid", "packed");
  const migrations =
    "migrations: { 1: (snapshot) => ({ ...snapshot, value: snapshot.value === 'paid' ? 'packed' : snapshot.value }) }, machine:";
  writeFileSync(cluster.file("order-2.ts"), migrates ? changed.replace("machine:", migrations) : changed);
  const manifest = readFileSync(cluster.file("order.toml"), "utf8").replace("order.ts", "order-2.ts");
  const second = migrates ? manifest.replace("state_version = 1", "state_version = 2") : manifest;
  writeFileSync(cluster.file("order-2.toml"), second.replace('version = "1"', 'version = "2"'));
}

describe("durable actors", () => {
  it("survive kills, are looked at, checked, and brought to other code while the old is there", async () => {
    await withCluster({ "worker.slots": 2 }, async (cluster) => {
      for (const name of ["order.ts", "order.toml"])
        copyFileSync(repositoryFile(`examples/order/${name}`), cluster.file(name));
      const coordinator = await cluster.startCoordinator();
      const worker = await cluster.startWorker({ args: ["--plugin", "order.toml"] });
      await sendAll(cluster, (order) => ({ type: "add", name: "tea", cents: 10 * order }));
      await untilAll(cluster, "all orders to be there", ({ events }) => events === 1);

      await worker.kill();
      await coordinator.kill();
      await cluster.startCoordinator();
      const older = await cluster.startWorker({ args: ["--plugin", "order.toml"] });
      await send(cluster, 1, { type: "pay", cents: 1 }, "--id", "too-little");
      await send(cluster, 1, { type: "pay", cents: 1 }, "--id", "too-little");
      await sendAll(cluster, () => ({ type: "pay", cents: 500 }));
      await untilAll(cluster, "all orders to be paid", ({ value }) => value === "paid");
      const first = (await actors(cluster, "--value", "paid")).find(({ key }) => key === "order/1");
      expect(first, "an id is one event, however often it is sent").to.include({ events: 3 });
      const told = await cluster.run("actor", "get", "order/3", "--json");
      expect(Object.keys(JSON.parse(told.stdout) as object), "programs rely on its members").to.deep.equal([
        ...["key", "type", "value", "status", "tags", "output", "context", "events", "state_version"],
        ...["phase", "pending", "next_item", "worker", "parked_by", "error"],
        ...["timers", "invocations", "children", "actions", "actions_error", "parent", "retires_at"],
      ]);
      const shown = await cluster.run("actor", "get", "order/3");
      expect(shown.stdout).to.contain("actor order/3: paid, after 2 events").and.contain(`"cents":30`);

      await isLookedAt(cluster);

      writeSecond(cluster, { migrates: false });
      const unfit = await cluster.run("actor", "check", "--plugin", "order-2.toml");
      expect(unfit.code, unfit.stderr).to.equal(1);
      expect(unfit.stdout).to.contain("12 of 12 would park").and.contain("order/2: state_refused");
      writeSecond(cluster, { migrates: true });
      const fit = await cluster.run("actor", "check", "--plugin", "order-2.toml", "--json");
      expect(fit.code, fit.stderr).to.equal(0);
      expect(JSON.parse(fit.stdout)).to.deep.include({ actors: ORDERS, fit: ORDERS, parks: [] });

      // Both versions are there: the states that the new one has written never meet the old one.
      await cluster.startWorker({ args: ["--plugin", "order-2.toml"] });
      await eventually("orders of the second version", async () => {
        await sendAll(cluster, () => ({ type: "add", cents: 0, name: "" }));
        const all = await actors(cluster);
        return all.some((actor) => actor.state_version === 2) ? true : undefined;
      });
      await older.kill();
      await sendAll(cluster, () => ({ type: "ship" }));
      await untilAll(cluster, "all orders to be shipped", ({ value }) => value === "shipped");
      const { stdout } = await cluster.run("status", "--json");
      expect(JSON.parse(stdout.split("\n")[0] ?? ""), "nothing has failed on the way").to.include({
        failed: 0,
      });
    });
  });
});
