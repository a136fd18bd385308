// Two real servers, the second a standby of the first: commits that wait for it, its promotion, and what a promotion loses.
import { expect } from "chai";
import type { RunId } from "../../src/base/ids.ts";
import { StorageLease } from "../../src/coordinator/lead/lease.ts";
import { openPostgresStore } from "../../src/storage/postgres/postgres-store.ts";
import type { Batch, CommitOutcome, Store } from "../../src/storage/store.ts";
import { batchOf, putOf, textOf } from "../support/batch.ts";
import { newRunId } from "../support/certificates.ts";
import { useClosers } from "../support/closers.ts";
import { hastyClock } from "../support/hasty-clock.ts";
import { query } from "../support/postgres-database.ts";
import { PostgresPair, urlOfHosts, WAITS_FOR_STANDBY } from "../support/postgres-pair.ts";
import { startPostgresProxy } from "./postgres/proxy.ts";
import { openTestStore, testStoreOptions } from "../support/postgres-store.ts";
import { rejectionOf } from "../support/rejection.ts";

interface Leading {
  readonly lease: StorageLease;
  readonly epoch: number;
  readonly turn: (key: string, durability?: Batch["durability"]) => Promise<CommitOutcome>;
}

async function lead(store: Store, holder: string): Promise<Leading> {
  const lease = new StorageLease(store, holder);
  const outcome = await lease.take(await lease.read());
  if (outcome.kind !== "taken") throw new Error(`${holder} does not lead: ${outcome.kind}`);
  const { epochRow, epoch } = outcome.leadership;
  const turn: Leading["turn"] = (key, durability = "sync") =>
    store.commit(batchOf({ puts: [putOf(key, "")], expect: [epochRow], durability }));
  return { lease, epoch, turn };
}

describe("Postgres: with a synchronous standby", () => {
  const closeLater = useClosers();
  let pair: PostgresPair;
  let runId: RunId;
  before(async () => {
    pair = await PostgresPair.start();
  });
  after(() => pair.close());
  beforeEach(() => {
    runId = newRunId();
  });

  const open = async (url = pair.primary.url): Promise<Store> => {
    const store = await openTestStore(url, runId);
    closeLater(() => store.close());
    return store;
  };
  const stopReceiving = async (): Promise<() => void> => {
    const goOn = await pair.stopReceiving();
    closeLater(goOn);
    return goOn;
  };

  it("a commit that stops waiting for it is unknown, although it is there, and its leader writes nothing more", async () => {
    const store = await open();
    const { turn } = await lead(store, "a");
    const goOn = await stopReceiving();
    const sent = turn("unreplicated");
    await query(pair.primary.url, "SELECT pg_cancel_backend($1)", [await pair.waitingForStandby()]);
    expect((await sent).kind).to.equal("unknown");
    expect(textOf(await store.get("unreplicated"))).to.equal("");
    expect((await turn("after")).kind).to.equal("unknown");
    goOn();
    const other = await open();
    expect((await lead(other, "b")).epoch).to.equal(1);
    expect(await other.get("after")).to.equal(undefined);
  });

  it("a renewal does not wait for it, and the lease is held while a commit waits", async () => {
    const { lease, turn } = await lead(await open(), "a");
    await lease.renew();
    const goOn = await stopReceiving();
    const sent = turn("waits");
    await pair.waitingForStandby();
    expect(await lease.renew()).to.deep.equal({ kind: "renewed" });
    expect(await lease.renew()).to.deep.equal({ kind: "renewed" });
    goOn();
    expect(await sent).to.deep.equal({ kind: "committed" });
  });

  it("a commit that is cut off while it waits is not seen, comes later, and is waited for by a claim", async () => {
    const proxy = await startPostgresProxy(pair.primary.url);
    closeLater(() => proxy.close());
    const [store, other] = [await open(proxy.url), await open()];
    // It has written before, so that its claim waits for nothing but the commit.
    await other.commit(batchOf({ puts: [putOf("other", "")] }));
    const { turn } = await lead(store, "a");
    const goOn = await stopReceiving();
    const sent = turn("waits");
    await pair.waitingForStandby();
    proxy.refuse(true);
    proxy.breakAll();
    expect(await other.get("waits"), "nobody sees it").to.equal(undefined);
    const claim = lead(other, "b");
    await pair.waitingForLock();
    goOn();
    expect((await claim).epoch).to.equal(1);
    expect(textOf(await other.get("waits")), "what a claim finds is final").to.equal("");
    proxy.refuse(false);
    expect(await sent).to.deep.equal({ kind: "committed" });
    expect((await turn("late")).kind).to.equal("conflict");
  });

  it("of several hosts the primary is found, then the one that is promoted; the old one, back, acknowledges nothing", async () => {
    const { primary, standby } = pair;
    expect(await rejectionOf(openTestStore(standby.url))).to.have.property("code", "store_unreachable");
    const gone = await startPostgresProxy(primary.url);
    await gone.close();
    const ports = [Number(new URL(gone.url).port), standby.port, primary.port];
    const store = await open(urlOfHosts(primary.url, ...ports));
    const { turn } = await lead(store, "a");
    expect((await turn("acknowledged")).kind).to.equal("committed");
    const generation = store.generation;
    await primary.halt("SIGQUIT");
    const sent = turn("over");
    await pair.promote();
    expect(await sent).to.deep.equal({ kind: "committed" });
    expect(store.generation).to.not.equal(generation);
    const other = await open(urlOfHosts(primary.url, primary.port, standby.port));
    expect([await other.get("acknowledged"), await other.get("over")].map(textOf)).to.deep.equal(["", ""]);
    expect((await lead(other, "b")).epoch).to.be.greaterThan(0);
    expect((await turn("late")).kind).to.equal("conflict");

    await primary.start(WAITS_FOR_STANDBY);
    const options = { ...testStoreOptions(primary.url, runId), clock: hastyClock(20) };
    const astray = await openPostgresStore(options);
    const lease = new StorageLease(astray, "c");
    expect((await lease.take(await lease.read())).kind).to.equal("unclear");
    await primary.halt("SIGQUIT");
    await astray.close();
  });
});

describe("Postgres: with a standby that is promoted while the primary lives on", () => {
  let pair: PostgresPair;
  before(async () => {
    pair = await PostgresPair.start();
  });
  after(() => pair.close());

  it("a commit that waits for it goes there, with everything after it, and nobody goes back to the old one", async () => {
    const { primary, standby } = pair;
    const url = urlOfHosts(primary.url, primary.port, standby.port);
    const store = await openTestStore(url, newRunId());
    const { lease, turn } = await lead(store, "a");
    expect((await turn("before")).kind).to.equal("committed");
    const generation = store.generation;
    await pair.promote();
    expect(await turn("waits")).to.deep.equal({ kind: "committed" });
    expect(store.generation).to.not.equal(generation);
    expect([await store.get("before"), await store.get("waits")].map(textOf)).to.deep.equal(["", ""]);
    expect(await lease.renew()).to.deep.equal({ kind: "renewed" });
    await standby.halt("SIGINT");
    expect((await turn("late")).kind, "the old one takes commits still, and is not asked").to.equal(
      "unknown",
    );
    await store.close();
  });
});

describe("Postgres: with a standby for which no commit waits", () => {
  let pair: PostgresPair;
  before(async () => {
    pair = await PostgresPair.start({});
  });
  after(() => pair.close());

  it("a leader whose commits a promotion has lost writes nothing more, and others see another generation", async () => {
    const { primary, standby } = pair;
    const url = urlOfHosts(primary.url, primary.port, standby.port);
    const runId = newRunId();
    const [store, other] = [await openTestStore(url, runId), await openTestStore(url, runId)];
    const { turn } = await lead(store, "a");
    expect((await turn("kept")).kind).to.equal("committed");
    await pair.received();
    await standby.halt("SIGINT");
    expect((await turn("lost")).kind).to.equal("committed");
    const generation = other.generation;
    await primary.halt("SIGQUIT");
    await standby.start();
    await pair.promote();
    const after = await turn("after");
    expect(after.kind === "unknown" && after.cause)
      .to.have.property("message")
      .that.includes("set back");
    expect((await turn("later", "flush")).kind).to.equal("unknown");
    const values = await other.getMany(["kept", "lost", "after", "later"]);
    expect(values.map(textOf)).to.deep.equal(["", undefined, undefined, undefined]);
    expect(other.generation).to.not.equal(generation);
    await store.close();
    await other.close();
  });
});
