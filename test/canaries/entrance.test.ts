// The ways in: `make`, `.ci/run`, and the version of Node that everything starts from.
import { expect } from "chai";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Ended, houseForAll, inHouse } from "./house.ts";

describe("canary: the version of Node", () => {
  const house = houseForAll(["scripts/check-node.js", "package.json"]);

  const pin = (version: string): void => {
    house.plant({ "package.json": JSON.stringify({ type: "module", devDependencies: { node: version } }) });
  };
  /** With a Node that says of itself that it is another. */
  const checkAs = (version: string, ...args: string[]): Promise<Ended> => {
    const versions = `{ value: { ...process.versions, node: "${version}" } }`;
    const disguise = `data:text/javascript,Object.defineProperty(process, "versions", ${versions})`;
    return house.run("node", "--import", disguise, "scripts/check-node.js", ...args);
  };

  it("passes the one that package.json pins", async () => {
    pin(process.versions.node);
    expect(await house.run("node", "scripts/check-node.js")).to.deep.equal({ code: 0, output: "" });
  });

  it("refuses any other, in one line that names both", async () => {
    pin("24.0.1");
    const { code, output } = await house.run("node", "scripts/check-node.js");
    expect(output).to.match(/^Node 24\.0\.1 is needed, and this is \d+\.\d+\.\d+: .*\n$/);
    expect(code).to.equal(2);
  });

  it("refuses to install with one that is too old", async () => {
    const { code, output } = await checkAs("18.20.4", "--to-install");
    expect(output).to.equal("Node 20 or newer is needed to install, and this is 18.20.4\n");
    expect(code).to.equal(2);
  });

  it("installs with an older one than the one that is pinned", async () => {
    expect(await checkAs("20.0.0", "--to-install")).to.deep.equal({ code: 0, output: "" });
  });
});

describe("canary: .ci/run", () => {
  const run = async (recipe: string): Promise<Ended & { lastLine: string | undefined }> => {
    const makefile = { Makefile: `test:\n\t@${recipe}\n` };
    const ended = await inHouse([".ci/run"], makefile, (house) => house.run(".ci/run"));
    return { ...ended, lastLine: ended.output.trimEnd().split("\n").at(-1) };
  };

  it("ends with the count of a run that passed", async () => {
    expect(await run("echo 12 passed, 0 failed")).to.deep.equal({
      code: 0,
      output: "12 passed, 0 failed\n",
      lastLine: "12 passed, 0 failed",
    });
  });

  it("ends with the count of a run that failed, after what make has to say, and fails", async () => {
    const { code, lastLine } = await run("echo 11 passed, 1 failed; exit 1");
    expect(lastLine).to.equal("11 passed, 1 failed");
    expect(code).to.not.equal(0);
  });

  it("says 0 passed and fails when the tests were never reached", async () => {
    const { code, lastLine } = await run("echo no such thing >&2; exit 1");
    expect(lastLine).to.equal("0 passed, 0 failed");
    expect(code).to.not.equal(0);
  });

  it("fails when make says that all is well, and counted nothing", async () => {
    const { code, lastLine } = await run("true");
    expect(lastLine).to.equal("0 passed, 0 failed");
    expect(code).to.not.equal(0);
  });
});

describe("make help", () => {
  it("lists every target", async () => {
    const makefile = readFileSync(join(import.meta.dirname, "../../Makefile"), "utf8");
    const targets = [...makefile.matchAll(/^([a-z][a-z0-9-]*):/gm)].map((match) => match[1]);
    const { code, output } = await inHouse(["Makefile"], {}, (house) => house.run("make"));
    expect(code).to.equal(0);
    expect(targets).to.include.members(["run", "test", "help"]);
    for (const target of targets) expect(output).to.match(new RegExp(`^  make ${target} +\\S`, "m"));
  });
});
