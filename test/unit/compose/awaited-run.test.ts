import { writeFileSync } from "node:fs";
import { expect } from "chai";
import { failure } from "../../../src/base/errors.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { askAwaited, openAwaitedRun, rereading } from "../../../src/compose/operator-command.ts";
import type { RolloutClient } from "../../../src/compose/rollout-client.ts";
import type { ClientConfig } from "../../../src/config/resolve.ts";
import { operatorFiles } from "../../../src/transport/tls/host-credentials.ts";
import { failureOf } from "../../support/rejection.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const PATIENCE_MS = 10_000;

describe("a run that is asked a moment before a coordinator leads it", () => {
  const away = failure("coordinator_refused_connection", { address: "127.0.0.1:1" });
  let clock: VirtualClock;
  let tries: number;

  beforeEach(() => {
    [clock, tries] = [new VirtualClock(), 0];
  });

  /** Answers at the try of this number. */
  const answering =
    (at: number, error: Error = away) =>
    (): Promise<string> =>
      ++tries === at ? Promise.resolve("an answer") : Promise.reject(error);

  async function asked(ask: () => Promise<string>, isComing: boolean): Promise<unknown> {
    const answer = askAwaited(ask, { isComing: () => Promise.resolve(isComing), clock }).catch(
      (error: unknown) => error,
    );
    await clock.advance(2 * PATIENCE_MS);
    return answer;
  }

  it("is asked again until it answers", async () => {
    expect([await asked(answering(4), true), tries]).to.deep.equal(["an answer", 4]);
  });

  it("is not asked again where no coordinator is on its way, nor for any other error", async () => {
    expect([await asked(answering(2), false), tries]).to.deep.equal([away, 1]);
    tries = 0;
    const refused = failure("item_unknown", { name: "x" });
    expect([await asked(answering(2, refused), true), tries]).to.deep.equal([refused, 1]);
  });

  it("is asked again for a limited time", async () => {
    const startMs = clock.monotonicMs();
    let lastMs = 0;
    const ask = (): Promise<string> => {
      lastMs = clock.monotonicMs() - startMs;
      return Promise.reject(away);
    };
    expect(await asked(ask, true)).to.equal(away);
    expect(lastMs).to.be.within(PATIENCE_MS, PATIENCE_MS + 100);
  });
});

describe("a configuration that is read again while a run is waited for", () => {
  const broken = failure("config_missing_key", { source: "rollout.toml", key: "run_id", allowed: "a ULID" });
  let clock: VirtualClock;
  let outcomes: (string | Error)[];
  let read: (from: string) => Promise<string>;

  beforeEach(() => {
    clock = new VirtualClock();
    read = rereading(() => {
      const outcome = outcomes.shift() ?? "nothing";
      return outcome instanceof Error ? Promise.reject(outcome) : Promise.resolve(outcome);
    }, clock);
  });

  async function readOf(...next: (string | Error)[]): Promise<unknown> {
    outcomes = next;
    const reading = read("a file").catch((error: unknown) => error);
    await clock.advance(PATIENCE_MS);
    return reading;
  }

  it("may be met half written, and is then read once more", async () => {
    expect(await readOf("whole")).to.equal("whole");
    expect(await readOf(broken, "whole again")).to.equal("whole again");
    expect(await readOf(broken, broken, "too late")).to.equal(broken);
  });

  it("is reported at once when it was broken from the start", async () => {
    expect([await readOf(broken, "whole"), outcomes.length]).to.deep.equal([broken, 1]);
  });
});

describe("a run that is waited for", () => {
  const directory = useTemporaryDirectory();
  const client = { status: () => Promise.resolve({}), close: () => undefined } as unknown as RolloutClient;
  const unreadable = (): Error =>
    failure("tls_file_unreadable", { what: "it", file: "ca.pem", reason: "gone", advice: "" });

  function openBy(open: () => Promise<RolloutClient>): ReturnType<typeof openAwaitedRun> {
    const transport = { certificates: undefined, tlsDir: directory.path };
    return openAwaitedRun({
      load: () => Promise.resolve({ transport } as unknown as ClientConfig),
      open,
      clock: new VirtualClock(),
      random: seededRandom(1),
      tell: () => undefined,
      signal: new AbortController().signal,
    });
  }

  function makeFiles(): void {
    const { caFile, certFile, keyFile } = operatorFiles(directory.path);
    for (const file of [caFile, certFile, keyFile]) writeFileSync(file, "");
  }

  it("is tried once more when files that were missing have come", async () => {
    let tries = 0;
    const opened = await openBy(() => {
      if (++tries > 1) return Promise.resolve(client);
      makeFiles();
      return Promise.reject(unreadable());
    });
    expect([opened.client, tries]).to.deep.equal([client, 2]);
  });

  it("is not waited for when its files are there but cannot be used", async () => {
    makeFiles();
    expect(await failureOf(openBy(() => Promise.reject(unreadable())))).to.have.property(
      "code",
      "tls_file_unreadable",
    );
  });
});
