import { expect } from "chai";
import { mkdir, readdir, readlink, writeFile } from "node:fs/promises";
import { failure } from "../../../src/base/errors.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { releaseOfFlags } from "../../../src/config/release-file.ts";
import { beginRelease } from "../../../src/compose/release-deeds.ts";
import type { CreatedRelease, Releases } from "../../../src/compose/releases.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";

type Asked = Parameters<Releases["begin"]>[1];

describe("the beginning of a release", () => {
  const directory = useTemporaryDirectory();

  /** A run's directory, with a candidate beside it; `answer` is the coordinator's. */
  async function begin(
    answer: (asked: Asked, times: number) => void,
    {
      isLocal = true,
      dryRun = false,
      signal = new AbortController().signal,
    }: { readonly isLocal?: boolean; readonly dryRun?: boolean; readonly signal?: AbortSignal } = {},
  ): Promise<readonly Asked[]> {
    await writeFile(directory.file("v2.toml"), `name = "words"\nversion = "2/b"\nbackend = "mock"\n`);
    await mkdir(directory.file("run"), { recursive: true });
    await writeFile(directory.file("run/task.json"), "{}");
    const asked: Asked[] = [];
    await beginRelease(
      {
        begin: async (_, how) => {
          asked.push(how);
          answer(how, asked.length);
          return {} as CreatedRelease;
        },
      },
      {
        order: releaseOfFlags(
          { plugin: directory.file("v2.toml"), stages: undefined, maxWorse: undefined },
          "/",
        ),
        ...{ wait: false, dryRun, clock: systemClock, signal },
        configFile: directory.file(isLocal ? "run/rollout.toml" : "rollout.toml"),
      },
    );
    return asked;
  }

  async function links(): Promise<string[]> {
    return readdir(directory.file("run/plugins")).catch(() => []);
  }

  it("links the candidate into a local run when nothing else is in the way, and waits for a worker that has it", async () => {
    const asked = await begin((_, times) => {
      if (times === 2) throw failure("release_no_worker", { plugin: "words", version: "2/b" });
    });
    expect(asked).to.deep.equal([{ wait: true, dryRun: true }, { wait: false }, { wait: false }]);
    expect(await links()).to.deep.equal(["words-2_b.toml"]);
    expect(await readlink(directory.file("run/plugins/words-2_b.toml"))).to.equal(directory.file("v2.toml"));
  });

  it("links nothing in a dry run, nor where the run refuses it", async () => {
    expect(await begin(() => undefined, { dryRun: true })).to.have.length(1);
    const refused = begin(() => {
      throw failure("release_no_items", {});
    });
    expect(await refused.catch((error: unknown) => error)).to.include({ code: "release_no_items" });
    expect(await links()).to.deep.equal([]);
  });

  it("takes the link back when the run refuses it then", async () => {
    const refused = begin((how) => {
      if (how.dryRun !== true) throw failure("release_no_items", {});
    });
    expect(await refused.catch((error: unknown) => error)).to.include({ code: "release_no_items" });
    expect(await links()).to.deep.equal([]);
  });

  it("takes the link back when it is interrupted while no worker has the candidate", async () => {
    const interruption = new AbortController();
    const interrupted = begin(
      (how) => {
        if (how.dryRun === true) return;
        interruption.abort();
        throw failure("release_no_worker", { plugin: "words", version: "2/b" });
      },
      { signal: interruption.signal },
    );
    expect(await interrupted.catch((error: unknown) => error)).to.include({ code: "interrupted" });
    expect(await links()).to.deep.equal([]);
  });

  it("asks once, and links nothing, where the run is not a local one", async () => {
    expect(await begin(() => undefined, { isLocal: false })).to.deep.equal([{ wait: false, dryRun: false }]);
    expect(await links()).to.deep.equal([]);
  });
});
