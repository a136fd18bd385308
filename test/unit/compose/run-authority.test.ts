// Coordinators that share a store, each with a TLS directory of its own: one CA for all of them.
import { copyFile, mkdir, readdir } from "node:fs/promises";
import { expect } from "chai";
import { systemRandom } from "../../../src/base/random.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { openServerIdentity } from "../../../src/compose/server-identity.ts";
import { resolveConfig } from "../../../src/config/resolve.ts";
import { readAuthority } from "../../../src/coordinator/lead/authority-record.ts";
import { NoopEmitter } from "../../../src/observe/events.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import { MemoryStore } from "../../../src/storage/memory/memory-store.ts";
import type { Store } from "../../../src/storage/store.ts";
import { authorityFingerprint } from "../../../src/transport/tls/authority.ts";
import { newRunId } from "../../support/certificates.ts";
import { failureOf } from "../../support/rejection.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";

/** As a database that several processes may have open. */
class SharedMemoryStore extends MemoryStore {
  override readonly supports = { multiProcess: true };
}

describe("the CA of coordinators that share a store", () => {
  const directory = useTemporaryDirectory();
  const runId = newRunId();
  let store: Store;

  beforeEach(() => {
    store = new SharedMemoryStore();
  });

  async function open(host: string, over = store): Promise<string | undefined> {
    const text = `run_id = "${runId}"\n[storage]\npath = "db"\n[transport]\nlisten_addr = "127.0.0.1:0"\ntls_dir = "tls"\n`;
    const config = resolveConfig("coordinator", {
      file: { path: directory.file(`${host}/rollout.toml`), text },
      ...{ environment: {}, flags: {}, workingDirectory: directory.path, topics: [] },
    });
    const ports = { clock: systemClock, random: systemRandom, log: silentLogger };
    const all = { ...ports, events: new NoopEmitter(), tell: () => undefined };
    const identity = await openServerIdentity(config, all, over);
    identity.stop();
    return identity.createdCaFile;
  }

  const tlsOf = (host: string): string => directory.file(`${host}/tls`);

  async function copyAuthority(from: string, to: string): Promise<void> {
    await mkdir(tlsOf(to), { recursive: true, mode: 0o700 });
    for (const name of ["ca.pem", "ca.key.pem"])
      await copyFile(`${tlsOf(from)}/${name}`, `${tlsOf(to)}/${name}`);
  }

  it("is made by the first, and its fingerprint stands in the store", async () => {
    expect(await open("h1")).to.equal(`${tlsOf("h1")}/ca.pem`);
    expect(await readAuthority(store)).to.equal(await authorityFingerprint(tlsOf("h1")));
    expect(await open("h1")).to.equal(undefined);
  });

  it("is never made by a second one, which says what to copy where", async () => {
    await open("h1");
    const error = await failureOf(open("h2"));
    expect(error.code).to.equal("other_authority");
    expect(error.message).to.equal(
      `there is no CA in ${tlsOf("h2")}, and the CA of this run is another one ` +
        `(SHA-256 ${(await authorityFingerprint(tlsOf("h1"))) ?? ""})`,
    );
    expect(error.hint).to.contain(`to ${tlsOf("h2")}`);
    expect(await readdir(directory.file("h2")).catch(() => [])).to.deep.equal([]);
  });

  it("accepts a second coordinator that has it", async () => {
    await open("h1");
    await copyAuthority("h1", "h2");
    expect(await open("h2")).to.equal(undefined);
  });

  it("refuses a coordinator that has another one", async () => {
    await open("h1");
    await open("h2", new SharedMemoryStore());
    const error = await failureOf(open("h2"));
    expect(error.message).to.contain(
      `the CA in ${tlsOf("h2")} is ${(await authorityFingerprint(tlsOf("h2"))) ?? ""}`,
    );
    expect(await authorityFingerprint(tlsOf("h2"))).to.not.equal(undefined);
  });

  it("is one, though two coordinators start for the first time at once, and the second one does not keep its own", async () => {
    const ended = await Promise.allSettled([open("h1"), open("h2")]);
    const refused = ended.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
    expect(refused).to.have.length(1);
    expect(refused[0]).to.have.property("code", "other_authority");
    const left = await Promise.all(["h1", "h2"].map((host) => authorityFingerprint(tlsOf(host))));
    expect(left.filter((fingerprint) => fingerprint !== undefined)).to.deep.equal([
      await readAuthority(store),
    ]);
  });

  it("is not recorded in a store that is one coordinator's", async () => {
    const own = new MemoryStore();
    await open("h1", own);
    expect(await readAuthority(own)).to.equal(undefined);
    expect(await open("h2", own)).to.equal(`${tlsOf("h2")}/ca.pem`);
  });
});
