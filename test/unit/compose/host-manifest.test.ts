import { expect } from "chai";
import { hostManifest } from "../../../src/compose/host-manifest.ts";

describe("a manifest for workers on hosts", () => {
  const head = 'name = "x"\nversion = "1"\nbackend = "command"\n';
  const directoryOf = (line: string): string | undefined =>
    /^working_directory = "(.*)"$/m.exec(hostManifest(`${head}${line}\n[command]\ncommand = ["sh"]\n`))?.[1];

  it("is of where a worker starts there, four directories above its own", () => {
    expect(directoryOf("")).to.equal("../../../../");
    expect(directoryOf('working_directory = "data/x"')).to.equal("../../../../data/x");
    expect(directoryOf('working_directory = "/srv"')).to.equal("/srv");
    expect(hostManifest(`${head}[command]\ncommand = ["sh"]\n`)).to.match(
      /\[command\]\ncommand = \[ "sh" \]/,
    );
  });
});
