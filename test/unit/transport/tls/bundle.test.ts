import { expect } from "chai";
import { writeFile } from "node:fs/promises";
import { systemClock } from "../../../../src/base/clock.ts";
import { issueBundle, loadBundle, readDestination } from "../../../../src/transport/tls/bundle.ts";
import type { Bundle } from "../../../../src/transport/tls/bundle.ts";
import { newIdentity, newRunId, TestAuthority } from "../../../support/certificates.ts";
import { failureOf } from "../../../support/rejection.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

describe("a credentials bundle", () => {
  const directory = useTemporaryDirectory();
  const runId = newRunId();
  const identity = newIdentity(runId, "enrolment");
  const coordinatorAddr = ["10.0.0.1:50051"];
  let text: string;

  before(async () => {
    const { authority } = await TestAuthority.make();
    text = await issueBundle(authority, { identity, coordinatorAddr });
  });

  async function load(content: string, mode = 0o600): Promise<Bundle> {
    const file = directory.file("enrolment.pem");
    await writeFile(file, content, { mode });
    return loadBundle(file, ["enrolment"], systemClock);
  }

  async function reasonFor(content: string): Promise<string | undefined> {
    const error = await failureOf(load(content));
    expect(error.code).to.equal("tls_file_invalid");
    return error.params["reason"];
  }

  it("is all that another host needs", async () => {
    const bundle = await load(text);
    expect(bundle.coordinatorAddr).to.deep.equal(coordinatorAddr);
    expect(bundle.facts.identity).to.deep.equal(identity);
    expect(Object.values(bundle.credentials).join("")).to.equal(text.slice(text.indexOf("-----BEGIN")));
    expect(text).to.contain(`# run: ${runId}\n`);
  });

  it("names all coordinators, the first as 0.1 reads it", async () => {
    const { authority } = await TestAuthority.make();
    const addresses = ["h1:50051", "h2:50051", "h3:50051"];
    const several = await issueBundle(authority, { identity, coordinatorAddr: addresses });
    expect((await load(several)).coordinatorAddr).to.deep.equal(addresses);
    expect(await readDestination(directory.file("enrolment.pem"))).to.deep.equal({
      runId,
      coordinatorAddr: addresses,
    });
    expect(/^# coordinator: (\S+)$/m.exec(several)?.[1]).to.equal("h1:50051");
  });

  it("is read with the line ends of another system", async () => {
    expect((await load(text.replaceAll("\n", "\r\n"))).facts.identity).to.deep.equal(identity);
  });

  it("is refused when a part is missing, twice there, or not what it should be", async () => {
    const [certificate = "", key = "", ca = ""] =
      text.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----\n/g) ?? [];
    const incomplete = "it does not hold a certificate, its key and the CA's certificate";
    expect(await reasonFor(text.replace(ca, ""))).to.equal(incomplete);
    expect(await reasonFor(text + ca)).to.equal(incomplete);
    expect(await reasonFor(text.slice(0, -40))).to.equal(incomplete);
    expect(await reasonFor(text.replace(key, certificate))).to.equal("it is not a private key");
    expect(await reasonFor(text.replace(ca, key))).to.equal(
      "the CA's certificate in it is not a certificate",
    );
    expect(await reasonFor("hello")).to.equal("it does not say its run and its coordinator");
    expect(await reasonFor(text.replace(/# run: .*/, "# run: x"))).to.equal(
      "it does not say its run and its coordinator",
    );
    expect(await reasonFor(text.replace(/# run: .*/, `# run: ${newRunId()}`))).to.match(/^it belongs to run/);
  });

  it("is refused when others may read it, or when it is not there", async () => {
    expect((await failureOf(load(text, 0o644))).code).to.equal("tls_key_exposed");
    const gone = loadBundle(directory.file("gone.pem"), ["enrolment"], systemClock);
    expect((await failureOf(gone)).code).to.equal("tls_file_unreadable");
  });
});
