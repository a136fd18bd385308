import { mkdir, readdir, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { newUlid } from "../../../src/base/ids.ts";
import type { IncarnationId } from "../../../src/base/ids.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { openOwnStore } from "../../../src/compose/own-store.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import { thisProcess } from "../../../src/storage/level/process-identity.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";

describe("the databases of coordinators' processes", () => {
  const directory = useTemporaryDirectory();

  it("are those of the last eight starts, killed ones included, and of any that lives", async () => {
    const coordinators = directory.file("coordinators");
    await mkdir(coordinators);
    const self = await thisProcess();
    const names = Array.from(
      { length: 12 },
      (_, at) => `01M7S07YN${"ABCDEFGHJKMN"[at] ?? ""}XFGXNEKQ4T8R1M0J`,
    );
    for (const [at, name] of names.entries()) {
      await mkdir(`${coordinators}/${name}`);
      // All killed processes but one have left their names; the second of all is this process.
      const pid = at === 1 ? self.pid : 2 ** 30;
      const holder = { ...self, pid, command: "rollout coordinator run", since: "2026-01-01T00:00:00.000Z" };
      if (at !== 2) await writeFile(`${coordinators}/${name}.lock`, JSON.stringify(holder));
    }
    const incarnation = newUlid<IncarnationId>(systemClock, systemRandom);
    const store = await openOwnStore(directory.path, incarnation, systemClock, silentLogger);
    await store.close();
    const left = [names[1] ?? "", ...names.slice(5)];
    const kept = (await readdir(coordinators)).sort();
    expect(kept).to.deep.equal([...left.flatMap((name) => [name, `${name}.lock`]), incarnation].sort());
  });
});
