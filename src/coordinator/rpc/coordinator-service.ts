// The service about coordinators, which each of them has, whether it leads or not: who is there and who leads, and the leader's
// leave to make room.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Epoch, IncarnationId, StoreId } from "../../base/ids.ts";
import { ulidToBytes } from "../../base/ids.ts";
import { CoordinatorRole } from "../../gen/rollout/v1/coordinator_pb.ts";
import type { CoordinatorSchema, CoordinatorService } from "../../gen/rollout/v1/coordinator_pb.ts";
import type { RoleName } from "../lead/presence.ts";
import type { Member } from "../lead/roster.ts";

/** The coordinator behind the service. */
export interface Desk {
  readonly incarnation: IncarnationId;
  readonly storeId: StoreId;
  /** All that there are, this one among them. */
  readonly members: () => readonly Member[];
  /** The leadership that it has or follows; undefined when it knows of none. */
  readonly epoch: () => Epoch | undefined;
  /** Ends the leadership of this epoch, or none if that has ended already. Rejects with not_leader and no_successor. */
  readonly stepDown: (epoch: number) => Promise<void>;
}

const WIRE_ROLE: { readonly [Name in RoleName]: CoordinatorRole } = {
  Following: CoordinatorRole.FOLLOWING,
  Claiming: CoordinatorRole.CLAIMING,
  Leader: CoordinatorRole.LEADER,
  Fenced: CoordinatorRole.FENCED,
  Halted: CoordinatorRole.HALTED,
};

export function coordinatorService(desk: Desk): ServiceImpl<typeof CoordinatorService> {
  const { incarnation, storeId } = desk;
  const envelope = (): { coordEpoch?: bigint; storeId: Uint8Array } => {
    const epoch = desk.epoch();
    return { ...(epoch !== undefined && { coordEpoch: BigInt(epoch) }), storeId: ulidToBytes(storeId) };
  };
  return {
    describe: () => ({ coordinator: envelope(), incarnation, coordinators: desk.members().map(writeMember) }),

    async stepDown({ epoch }) {
      await desk.stepDown(epoch);
      return { coordinator: envelope() };
    },
  };
}

function writeMember({ incarnation, row, isPresent }: Member): MessageInitShape<typeof CoordinatorSchema> {
  return {
    incarnation,
    address: row.address,
    role: WIRE_ROLE[row.role],
    present: isPresent,
    weight: row.weight,
    ...(row.epoch !== null && { epoch: row.epoch }),
    ...(row.snapshotNumber !== null && { snapshotNumber: row.snapshotNumber }),
    ...(row.rehearsalMs !== null && { rehearsalMs: row.rehearsalMs }),
    ...(row.rehearsedAtWallMs !== null && { rehearsedAtMs: row.rehearsedAtWallMs }),
    ...(row.hearsLeader !== null && { hearsLeader: row.hearsLeader }),
    ...(row.electedAtWallMs !== null && { electedAtMs: row.electedAtWallMs }),
  };
}
