import { expect } from "chai";
import { X509Certificate } from "node:crypto";
import { chmod, mkdir, readdir, readFile, rm, stat, unlink, writeFile } from "node:fs/promises";
import { systemClock } from "../../../../src/base/clock.ts";
import { systemRandom } from "../../../../src/base/random.ts";
import { openAuthority } from "../../../../src/transport/tls/authority.ts";
import { LIFETIMES } from "../../../../src/transport/tls/lifetimes.ts";
import type { OpenedAuthority } from "../../../../src/transport/tls/authority.ts";
import { newIdentity, newRunId } from "../../../support/certificates.ts";
import { failureOf } from "../../../support/rejection.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

describe("the dev CA", () => {
  const directory = useTemporaryDirectory();
  const tlsDir = (): string => directory.file("tls");
  const file = (name: string): string => directory.file(`tls/${name}`);
  const open = (): Promise<OpenedAuthority> =>
    openAuthority({ tlsDir: tlsDir(), clock: systemClock, random: systemRandom });

  it("is made at first boot, readable by its owner alone, and read at later ones", async () => {
    const first = await open();
    expect(first.created).to.equal(true);
    expect(first.caFile).to.equal(file("ca.pem"));
    expect((await stat(file("ca.key.pem"))).mode & 0o777).to.equal(0o600);
    expect((await stat(tlsDir())).mode & 0o777).to.equal(0o700);
    expect((await readdir(tlsDir())).sort()).to.deep.equal(["ca.key.pem", "ca.pem"]);
    const second = await open();
    expect(second.created).to.equal(false);
    expect(second.authority.certificatePem).to.equal(first.authority.certificatePem);
  });

  it("is kept from others in a directory where something else is too, and that is left alone", async () => {
    await open();
    await mkdir(file("shared"));
    await writeFile(file("letter.txt"), "dear");
    for (const name of ["", "shared", "letter.txt", "ca.pem"]) await chmod(file(name), 0o777);
    await open();
    const modes = ["", "shared", "letter.txt", "ca.pem"].map(
      async (name) => (await stat(file(name))).mode & 0o777,
    );
    expect(await Promise.all(modes)).to.deep.equal([0o700, 0o777, 0o777, 0o755]);
  });

  it("signs peers and nothing that signs, and is valid for years from a day ago", async () => {
    const { authority } = await open();
    const certificate = new X509Certificate(authority.certificatePem);
    expect(certificate.ca).to.equal(true);
    const nowMs = systemClock.wallMs();
    expect(Date.parse(certificate.validFrom)).to.be.closeTo(nowMs - LIFETIMES.backdateMs, 10_000);
    expect(Date.parse(certificate.validTo)).to.be.closeTo(nowMs + LIFETIMES.authorityMs, 10_000);
    const { certificatePem } = await authority.issue({ identity: newIdentity(newRunId(), "worker") });
    const issued = new X509Certificate(certificatePem);
    expect(issued.ca).to.equal(false);
    expect(issued.checkIssued(certificate)).to.equal(true);
    expect(authority.hasSigned(certificatePem)).to.equal(true);
  });

  it("is one, when several processes boot for the first time at once", async () => {
    const opened = await Promise.all(Array.from({ length: 8 }, open));
    expect(opened.filter(({ created }) => created)).to.have.length(1);
    expect(new Set(opened.map(({ authority }) => authority.certificatePem)).size).to.equal(1);
    expect((await readdir(tlsDir())).sort()).to.deep.equal(["ca.key.pem", "ca.pem"]);
  });

  for (const missing of ["ca.pem", "ca.key.pem"]) {
    it(`is refused, not completed, when ${missing} is missing`, async () => {
      await open();
      await unlink(file(missing));
      const error = await failureOf(open());
      expect(error.code).to.equal("tls_file_unreadable");
      expect(error.params).to.include({ file: file(missing), reason: "there is no such file" });
    });
  }

  it("is refused when its key is another one's", async () => {
    await open();
    const key = await readFile(file("ca.key.pem"), "utf8");
    await rm(tlsDir(), { recursive: true });
    await open();
    await writeFile(file("ca.key.pem"), key, { mode: 0o600 });
    const error = await failureOf(open());
    expect(error.code).to.equal("tls_file_invalid");
    expect(error.params).to.include({
      file: file("ca.key.pem"),
      reason: "it is not the key of that certificate",
    });
  });

  for (const [name, reason] of [
    ["ca.pem", "it is not a certificate"],
    ["ca.key.pem", "it is not a private key"],
  ] as const) {
    it(`is refused when ${name} is cut short`, async () => {
      await open();
      await writeFile(file(name), (await readFile(file(name), "utf8")).slice(0, 80));
      const error = await failureOf(open());
      expect(error.code).to.equal("tls_file_invalid");
      expect(error.params).to.include({ file: file(name), reason });
    });
  }

  it("is refused when its certificate is a peer's", async () => {
    const { authority } = await open();
    const peer = await authority.issue({ identity: newIdentity(newRunId(), "worker") });
    await writeFile(file("ca.pem"), peer.certificatePem);
    await writeFile(file("ca.key.pem"), peer.keyPem);
    expect((await failureOf(open())).params["reason"]).to.equal("it is not a CA's certificate");
  });

  it("is refused when others may read its key", async () => {
    await open();
    await chmod(file("ca.key.pem"), 0o640);
    const error = await failureOf(open());
    expect(error.code).to.equal("tls_key_exposed");
    expect(error.params).to.deep.equal({ file: file("ca.key.pem"), mode: "640" });
  });

  it("says which file it cannot read or write", async () => {
    await mkdir(file("ca.pem"), { recursive: true });
    expect((await failureOf(open())).params["reason"]).to.equal("it is a directory");
    await rm(tlsDir(), { recursive: true });
    await writeFile(tlsDir(), "");
    expect((await failureOf(open())).code).to.equal("file_unwritable");
  });
});
