import { expect } from "chai";
import type { RunId } from "../../../src/base/ids.ts";
import { auditTo } from "../../../src/transport/audit.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import type { LogFields } from "../../../src/observe/log.ts";

describe("the audit", () => {
  it("is one warning for each refusal, marked, with who and why", () => {
    const lines: [string, LogFields | undefined][] = [];
    const audit = auditTo({ ...silentLogger, warn: (message, fields) => lines.push([message, fields]) });
    audit({
      reason: "speaks_as_another",
      remoteAddress: "127.0.0.1:4",
      identity: { runId: "R" as RunId, role: "worker", id: "W" },
      method: "x/Beat",
    });
    audit({ reason: "no_certificate", remoteAddress: "unknown" });
    expect(lines).to.deep.equal([
      [
        "refused",
        {
          audit: true,
          reason: "speaks_as_another",
          from: "127.0.0.1:4",
          role: "worker",
          id: "W",
          run: "R",
          method: "x/Beat",
        },
      ],
      ["refused", { audit: true, reason: "no_certificate", from: "unknown" }],
    ]);
  });
});
