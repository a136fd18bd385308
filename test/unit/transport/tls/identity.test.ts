import { expect } from "chai";
import type { RunId } from "../../../../src/base/ids.ts";
import { describeIdentity, identityUri, parseIdentityUri } from "../../../../src/transport/tls/identity.ts";
import { newIdentity, newRunId } from "../../../support/certificates.ts";

const RUN = "01JZ0000000000000000000000" as RunId;
const ID = "01JZ0000000000000000000001";
const GOOD = `spiffe://rollout/run/${RUN}/worker/${ID}`;

describe("an identity's URI", () => {
  it("is read as what it was written from", () => {
    for (const role of ["coordinator", "worker", "operator", "enrolment"] as const) {
      const identity = newIdentity(newRunId(), role);
      expect(parseIdentityUri(identityUri(identity))).to.deep.equal(identity);
    }
    expect(parseIdentityUri(GOOD)).to.deep.equal({ runId: RUN, role: "worker", id: ID });
    expect(describeIdentity({ runId: RUN, role: "worker", id: ID })).to.equal(`worker ${ID}`);
  });

  for (const [what, uri] of [
    ["lower case", GOOD.toLowerCase()],
    ["an unknown role", GOOD.replace("worker", "admin")],
    ["a role in capitals", GOOD.replace("worker", "Worker")],
    ["another scheme", GOOD.replace("spiffe", "https")],
    ["another authority", GOOD.replace("//rollout", "//elsewhere")],
    ["one part too many", `${GOOD}/x`],
    ["a slash at the end", `${GOOD}/`],
    ["a line break at the end", `${GOOD}\n`],
    ["a zero byte", `${GOOD}\u0000`],
    ["a second URI behind it", `${GOOD}, URI:${GOOD}`],
    ["a query", `${GOOD}?x`],
    ["an id that is no ULID", GOOD.replace(ID, "7")],
    ["an id over 128 bits", GOOD.replace(ID, `8${ID.slice(1)}`)],
    ["a percent sign", GOOD.replace("worker", "%77orker")],
    ["nothing", ""],
  ] as const) {
    it(`is not read with ${what}`, () => {
      expect(parseIdentityUri(uri)).to.equal(undefined);
    });
  }
});
