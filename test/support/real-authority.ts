// A CA of the user's own, as files: what `--ca-file`, `--cert-file` and `--key-file` name.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import type { Authority } from "../../src/transport/tls/authority.ts";
import { openAuthority } from "../../src/transport/tls/authority.ts";
import type { Credentials } from "../../src/transport/tls/identity.ts";

/** The development CA of a directory, made when it is not there. */
export async function authorityIn(tlsDir: string): Promise<Authority> {
  return (await openAuthority({ tlsDir, clock: systemClock, random: systemRandom })).authority;
}

/** Writes the three files, in place of those that are there, and gives the flags that name them. */
export async function writeCredentials(directory: string, credentials: Credentials): Promise<string[]> {
  const { certificatePem, keyPem, caPem } = credentials;
  const [caFile, certFile, keyFile] = ["ca.pem", "cert.pem", "key.pem"].map((name) => join(directory, name));
  if (caFile === undefined || certFile === undefined || keyFile === undefined) throw new Error("three names");
  await mkdir(directory, { recursive: true });
  await writeFile(caFile, caPem);
  await writeFile(certFile, certificatePem);
  await writeFile(keyFile, keyPem, { mode: 0o600 });
  return ["--ca-file", caFile, "--cert-file", certFile, "--key-file", keyFile];
}
