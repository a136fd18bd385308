// The table of the transport's limits, against the methods that there are.
import { expect } from "chai";
import { OperatorService } from "../../../src/gen/rollout/v1/run_pb.ts";
import { methodName } from "../../../src/transport/errors.ts";
import { TRANSPORT_LIMITS } from "../../../src/transport/limits.ts";

describe("the limits of the transport", () => {
  it("let a question of an operator be small, whichever it is: only what is submitted is large", () => {
    const { methods, maxMessageBytes } = TRANSPORT_LIMITS;
    const large = OperatorService.methods
      .map(methodName)
      .filter((name) => (methods[name]?.messageBytes ?? maxMessageBytes) > 64 * 1_024);
    expect(large).to.deep.equal(["rollout.v1.OperatorService/Submit"]);
  });
});
