import { writeFileSync } from "node:fs";
import { expect } from "chai";
import { failure } from "../../../src/base/errors.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { openAwaitedRun } from "../../../src/compose/awaited-run.ts";
import type { RolloutClient } from "../../../src/compose/rollout-client.ts";
import type { ClientConfig } from "../../../src/config/resolve.ts";
import { operatorFiles } from "../../../src/transport/tls/host-credentials.ts";
import { failureOf } from "../../support/rejection.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

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

  it("is tried once more when the files that it lacked have come meanwhile", async () => {
    let tries = 0;
    const opened = await openBy(() => {
      if (++tries > 1) return Promise.resolve(client);
      makeFiles();
      return Promise.reject(unreadable());
    });
    expect([opened.client, tries]).to.deep.equal([client, 2]);
  });

  it("is not waited for when its files are there and no use", async () => {
    makeFiles();
    expect(await failureOf(openBy(() => Promise.reject(unreadable())))).to.have.property(
      "code",
      "tls_file_unreadable",
    );
  });
});
