import { createServer } from "node:net";
import { once } from "node:events";
import { expect } from "chai";
import { newUlid } from "../../../../src/base/ids.ts";
import type { RunId } from "../../../../src/base/ids.ts";
import { systemClock } from "../../../../src/base/clock.ts";
import { systemRandom } from "../../../../src/base/random.ts";
import { localConfigText, namedAddress } from "../../../../src/compose/local-run/local-config.ts";

function configured(address: string): string {
  return localConfigText(newUlid<RunId>(systemClock, systemRandom), address, undefined);
}

function named(text: string | undefined): Promise<string> {
  return namedAddress({ read: () => Promise.resolve(text) });
}

describe("the address of a local run that no coordinator leads", () => {
  it("is the address of its last coordinator", async () => {
    expect(await named(configured("127.0.0.1:4711"))).to.equal("127.0.0.1:4711");
  });

  for (const [what, text] of [
    ["there was none", undefined],
    ["an earlier version named any port", configured("127.0.0.1:0")],
    ["other machines reach the one that it names", configured("0.0.0.0:4711")],
    ["the configuration cannot be read", "[transport\n"],
    ["it names none", 'run_id = "x"\n[transport]\nlisten_addr = 7\n'],
  ] as const) {
    it(`is one at which nothing listens where ${what}`, async () => {
      const address = await named(text);
      const [, port = "0"] = /^127\.0\.0\.1:([1-9]\d*)$/.exec(address) ?? [];
      const server = createServer().listen(Number(port), "127.0.0.1");
      await once(server, "listening");
      server.close();
      expect(Number(port)).to.be.greaterThan(0);
    });
  }
});
