import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "chai";
import { RolloutError } from "../../../src/base/errors.ts";
import { errorLine, errorObject } from "../../../src/cli/render/error.ts";

const run = promisify(execFile);
const SCRIPT = new URL("../../../bin/require-node.js", import.meta.url).href;
/** Has `node:module` export what Node 20 exports of it, and the process say that it is that Node. */
const AS_NODE_20 = `
  import { registerHooks } from "node:module";
  const stub = "data:text/javascript,export const createRequire = undefined; export default { createRequire };";
  registerHooks({
    resolve: (name, context, next) => (name === "node:module" ? { url: stub, shortCircuit: true } : next(name, context)),
  });
  Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.20.2" } });`;

async function onNode(
  version: string,
  ...args: string[]
): Promise<{ stdout: string; stderr: string; fine: boolean }> {
  const code = `
    Object.defineProperty(process, "versions", { value: { ...process.versions, node: ${JSON.stringify(version)} } });
    const { requireNode } = await import(${JSON.stringify(SCRIPT)});
    if (requireNode()) process.exitCode = 99;`;
  const result = await run(process.execPath, ["--input-type=module", "-e", code, "--", ...args]).catch(
    (error: unknown) => error as { code: number; stdout: string; stderr: string },
  );
  return { stdout: result.stdout, stderr: result.stderr, fine: "code" in result && result.code === 99 };
}

describe("the version of Node", () => {
  it("is refused in the words of the table when it is too old", async () => {
    const error = new RolloutError("node_too_old", { needed: "22.18", found: "20.20.2" });
    expect(await onNode("20.20.2")).to.deep.equal({
      stdout: "",
      stderr: `${errorLine(error, false)}\n`,
      fine: false,
    });
    const json = await onNode("20.20.2", "--json");
    expect(JSON.parse(json.stdout)).to.deep.equal(errorObject(error));
  });

  for (const program of ["run.js", "rollout-coordinator.js", "dev.js"]) {
    it(`is refused by bin/${program} in the same words, before it loads what an old Node lacks`, async () => {
      const path = fileURLToPath(new URL(`../../../bin/${program}`, import.meta.url));
      const hooks = `data:text/javascript,${encodeURIComponent(AS_NODE_20)}`;
      const result = await run(process.execPath, ["--import", hooks, path]).catch((error: unknown) => error);
      const error = new RolloutError("node_too_old", { needed: "22.18", found: "20.20.2" });
      expect(result).to.include({ code: 2, stdout: "", stderr: `${errorLine(error, false)}\n` });
    });
  }

  for (const version of ["22.18.0", "22.19.1", "23.0.0", "24.19.0", "26.1.0"]) {
    it(`${version} is accepted`, async () => {
      expect(await onNode(version)).to.deep.equal({ stdout: "", stderr: "", fine: true });
    });
  }

  for (const version of ["18.20.8", "20.20.2", "22.17.9"]) {
    it(`${version} is refused`, async () => expect((await onNode(version)).fine).to.equal(false));
  }
});
