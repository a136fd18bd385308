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
import type { Provocation, Scene } from "./provocations/provocations.ts";

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

async function provoke(cluster: Cluster, code: string, provocation: Provocation): Promise<void> {
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

const titleOf = (code: string, { by }: Provocation): string => `${code}: provoked by ${by}`;

describe("the table of errors", () => {
  const all = Object.entries<Provocation>(PROVOCATIONS);

  describe("in a cluster of its own for each", () => {
    const it = concurrentTests(4);

    it("has a provocation for every row", async () => {
      expect(Object.keys(PROVOCATIONS)).to.have.members(Object.keys(ERRORS));
    });

    for (const [code, provocation] of all.filter(([, each]) => each.isBesideOthers !== true))
      it(titleOf(code, provocation), () => withCluster({}, (cluster) => provoke(cluster, code, provocation)));
  });

  describe("beside one coordinator", () => {
    const [led, over] = [Promise.withResolvers<Cluster>(), Promise.withResolvers<undefined>()];
    let ended: Promise<void>;

    before(async () => {
      ended = withCluster({}, async (cluster) => {
        await cluster.startCoordinator();
        led.resolve(cluster);
        await over.promise;
        expect(cluster.coordinator.isRunning).to.equal(true);
      });
      ended.catch(led.reject);
      await led.promise;
    });
    after(() => {
      over.resolve(undefined);
      return ended;
    });

    for (const [code, provocation] of all.filter(([, each]) => each.isBesideOthers === true))
      it(titleOf(code, provocation), async () => provoke(await led.promise, code, provocation));
  });
});

function errorOf(object: object): object {
  return { error: "error" in object ? object.error : undefined };
}

function codeOf(text: string): ErrorCode {
  if (isErrorCode(text)) return text;
  throw new Error(`${text} is no row`);
}
