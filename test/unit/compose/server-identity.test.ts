import { writeFile } from "node:fs/promises";
import { expect } from "chai";
import { systemRandom } from "../../../src/base/random.ts";
import { openServerIdentity } from "../../../src/compose/server-identity.ts";
import type { ServerIdentity } from "../../../src/compose/server-identity.ts";
import { resolveConfig } from "../../../src/config/resolve.ts";
import { NoopEmitter } from "../../../src/observe/events.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import { MemoryStore } from "../../../src/storage/memory/memory-store.ts";
import type { Credentials } from "../../../src/transport/tls/identity.ts";
import { newIdentity, newRunId, TestAuthority } from "../../support/certificates.ts";
import { writeCredentials } from "../../support/real-authority.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const MINUTE_MS = 60_000;

describe("the identity of the coordinator, from files", () => {
  const directory = useTemporaryDirectory();
  const clock = new VirtualClock();
  const runId = newRunId();
  let onError: (message: string) => void = () => undefined;
  const log = { ...silentLogger, error: (message: string) => onError(message) };
  let ca: TestAuthority;
  let identity: ServerIdentity;

  const issue = (): Promise<Credentials> => ca.issue(newIdentity(runId, "coordinator"));
  const replace = (credentials: Credentials): Promise<unknown> =>
    writeCredentials(directory.path, credentials);
  /** Resolves with the next credentials that are handed over; `ask` asks for them at once. */
  const handedOver = (): { next: Promise<Credentials>; ask: () => void } => {
    const { promise: next, resolve } = Promise.withResolvers<Credentials>();
    return { next, ask: identity.keepFresh(resolve) };
  };

  beforeEach(async () => {
    ca = await TestAuthority.make(clock);
    await replace(await issue());
    const files = ["ca", "cert", "key"].map((name) => `${name}_file = "${name}.pem"`).join("\n");
    const text = `run_id = "${runId}"\n[storage]\npath = "db"\n[transport]\nlisten_addr = "127.0.0.1:0"\n${files}\n`;
    const config = resolveConfig("coordinator", {
      file: { path: directory.file("rollout.toml"), text },
      environment: {},
      flags: {},
      workingDirectory: directory.path,
      topics: [],
    });
    const events = new NoopEmitter();
    const ports = { clock, random: systemRandom, events, log, tell: () => undefined };
    identity = await openServerIdentity(config, ports, new MemoryStore());
  });
  afterEach(() => identity.stop());

  it("is checked every minute: files that were replaced are loaded", async () => {
    const { next } = handedOver();
    const fresh = await issue();
    await replace(fresh);
    await clock.advance(MINUTE_MS);
    expect(await next).to.deep.equal(fresh);
  });

  it("is checked at once on request", async () => {
    const { next, ask } = handedOver();
    const fresh = await issue();
    await replace(fresh);
    ask();
    expect(await next).to.deep.equal(fresh);
  });

  it("stays as it is while the files cannot be used, and is checked again", async () => {
    const { next } = handedOver();
    await writeFile(directory.file("key.pem"), "half a ");
    const complaint = new Promise((resolve) => (onError = resolve));
    await clock.advance(MINUTE_MS);
    expect(await complaint).to.contain("the old one stays in use");
    const fresh = await issue();
    await replace(fresh);
    await clock.advance(MINUTE_MS);
    expect(await next).to.deep.equal(fresh);
  });

  it("is not checked after it was stopped", () => {
    handedOver();
    identity.stop();
    expect(clock.armed).to.equal(0);
  });
});
