// The table of the transport's limits, against the methods that there are.
import { expect } from "chai";
import { FleetService } from "../../../src/gen/rollout/v1/fleet_pb.ts";
import { KeyService } from "../../../src/gen/rollout/v1/keys_pb.ts";
import { ReleaseService } from "../../../src/gen/rollout/v1/release_pb.ts";
import { OperatorService } from "../../../src/gen/rollout/v1/run_pb.ts";
import { methodName } from "../../../src/transport/errors.ts";
import { TRANSPORT_LIMITS } from "../../../src/transport/limits.ts";

describe("the limits of the transport", () => {
  it("let every question of an operator be small: only submitted items and imported keys may be large", () => {
    const { methods, maxMessageBytes } = TRANSPORT_LIMITS;
    const large = [OperatorService, KeyService, ReleaseService, FleetService]
      .flatMap((service) => service.methods.map(methodName))
      .filter((name) => (methods[name]?.messageBytes ?? maxMessageBytes) > 64 * 1_024);
    expect(large).to.deep.equal(["rollout.v1.OperatorService/Submit", "rollout.v1.KeyService/ImportKeys"]);
  });
});
