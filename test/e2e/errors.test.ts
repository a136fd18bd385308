import { cp } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { ERRORS } from "../../src/base/error-table.ts";
import { failure, isErrorCode } from "../../src/base/errors.ts";
import type { ErrorCode, RolloutError } from "../../src/base/errors.ts";
import { errorLine, errorObject } from "../../src/cli/render/error.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { PROVOCATIONS } from "./provocations/provocations.ts";
import type { Provocation, Scene, StagedProvocation } from "./provocations/provocations.ts";
import { tellingRows } from "./provocations/told-rows.ts";

/** Also met without `--json`: an error of usage, of the configuration, of a file and of a store. */
const PLAIN: readonly string[] = ["usage", "config_missing_key", "input_invalid", "store_corrupt"];
const INSTALLATION = fileURLToPath(new URL("../..", import.meta.url));

/** The command at its end: one line for a person, the object for a program, the code of the row, nothing of ours besides. */
async function expectMet(cluster: Cluster, scene: Scene, error: RolloutError, json: boolean): Promise<void> {
  const command = cluster.launch([...scene.args, ...(json ? ["--json"] : [])], {
    env: { ROLLOUT_LOG_LEVEL: "error", ...scene.env },
    ...(scene.wrapper === undefined ? {} : { wrapper: scene.wrapper }),
  });
  await scene.meanwhile?.(command);
  const ending = await command.ended;
  const isTold = (line: string): boolean => scene.tellsMore === undefined || line.startsWith("error:");
  expect(command.stderr.filter(isTold)).to.deep.equal([errorLine(error, false)]);
  expect(ending).to.deep.equal({ code: error.row.exit, signal: null });
  const printed = command.stdout.filter((line) => !line.includes(`"kind":"domain"`));
  const objects = printed.map((line) => JSON.parse(line) as object);
  const shown = scene.tellsMore === undefined ? objects : objects.map(errorOf);
  expect(shown).to.deep.equal(json ? [errorObject(error)] : []);
  expect([...command.stderr, ...command.stdout].join("\n")).to.not.contain(INSTALLATION);
}

async function provoke(cluster: Cluster, code: string, provocation: StagedProvocation): Promise<void> {
  const scene = await provocation.stage(cluster);
  try {
    const error = failure(codeOf(code), scene.params);
    // With `--json` the line for a person is printed too: without it there is a line less, whatever the row.
    if (PLAIN.includes(code)) await expectMet(cluster, scene, error, false);
    await expectMet(cluster, scene, error, true);
  } finally {
    await scene.after?.();
  }
}

const titleOf = (code: string, { by }: Pick<Provocation, "by">): string => `${code}: provoked by ${by}`;

/** A cluster for all tests of a `describe`, and what `use` makes of it. */
function besides<Made>(
  make: (cluster: Cluster, use: (made: Made) => Promise<void>) => Promise<void>,
): () => Promise<Made> {
  const [made, over] = [Promise.withResolvers<Made>(), Promise.withResolvers<undefined>()];
  let ended: Promise<void>;
  before(async () => {
    ended = withCluster({}, (cluster) =>
      make(cluster, (found) => {
        made.resolve(found);
        return over.promise;
      }),
    );
    ended.catch(made.reject);
    await made.promise;
  });
  after(() => {
    over.resolve(undefined);
    return ended;
  });
  return () => made.promise;
}

describe("the table of errors", () => {
  const all = Object.entries<Provocation>(PROVOCATIONS);
  const staged = all.flatMap(([code, each]) => ("stage" in each ? [{ code, each }] : []));

  it("has a provocation for every row", () => {
    expect(Object.keys(PROVOCATIONS)).to.have.members(Object.keys(ERRORS));
  });

  describe("in a cluster of its own for each", () => {
    const it = concurrentTests(4);
    const own = staged.filter(({ each }) => each.isBesideOthers !== true && each.wasLed !== true);

    for (const { code, each } of own)
      it(titleOf(code, each), () => withCluster({}, (cluster) => provoke(cluster, code, each)));
  });

  describe("in a directory that a coordinator has left", () => {
    const left = besides<Cluster>(async (cluster, use) => {
      await cluster.startCoordinator();
      await cluster.coordinator.stop();
      await use(cluster);
    });

    for (const { code, each } of staged.filter(({ each: { wasLed } }) => wasLed === true))
      it(titleOf(code, each), async () => {
        const { runId, directory } = await left();
        await withCluster({ run_id: runId }, async (cluster) => {
          await cp(join(directory, "data"), cluster.file("data"), { recursive: true });
          await provoke(cluster, code, each);
        });
      });
  });

  describe("beside one coordinator", () => {
    const led = besides<Cluster>(async (cluster, use) => {
      await cluster.startCoordinator();
      await use(cluster);
      expect(cluster.coordinator.isRunning).to.equal(true);
    });

    for (const { code, each } of staged.filter(({ each: { isBesideOthers } }) => isBesideOthers === true))
      it(titleOf(code, each), async () => provoke(await led(), code, each));
  });

  describe("told by a coordinator", () => {
    const telling = besides(tellingRows);

    for (const [code, each] of all)
      if ("says" in each)
        it(titleOf(code, each), async () => {
          const error = failure(codeOf(code), each.says);
          const tell = await telling();
          expect(await tell(error)).to.deep.equal({
            code: error.row.exit,
            stdout: `${JSON.stringify(errorObject(error))}\n`,
            stderr: `${errorLine(error, false)}\n`,
          });
        });
  });
});

function errorOf(object: object): object {
  return { error: "error" in object ? object.error : undefined };
}

function codeOf(text: string): ErrorCode {
  if (isErrorCode(text)) return text;
  throw new Error(`${text} is no row`);
}
