// The run, steered: shown, paused, resumed, cancelled.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { LIMITS } from "../../config/limits.ts";
import type { GetRunResponseSchema, RunService } from "../../gen/rollout/v1/run_pb.ts";
import { RunState } from "../../gen/rollout/v1/run_pb.ts";
import type { RunPhase, RunView } from "../turn/run-view.ts";
import type { Leader } from "./leader.ts";
import { ask } from "./leader.ts";
import { refuse, refuseIfCancelled } from "./refusals.ts";

const UNNAMED_REASON = "an operator has paused it";

export function steering(
  leader: Leader,
): Pick<ServiceImpl<typeof RunService>, "getRun" | "pause" | "resume" | "cancel"> {
  const { envelope: coordinator } = leader;
  return {
    async getRun() {
      const view = await ask<RunView>(leader, (answer) => ({ kind: "getRun", answer }));
      return { coordinator, ...writeRun(view) };
    },

    async pause({ reason }) {
      if (Buffer.byteLength(reason) > LIMITS.itemTextBytes)
        return refuse("Pause", `the reason is longer than ${LIMITS.itemTextBytes} bytes`);
      const said = reason === "" ? UNNAMED_REASON : reason;
      refuseIfCancelled(await ask<RunView>(leader, (answer) => ({ kind: "pause", reason: said, answer })));
      return { coordinator };
    },

    async resume() {
      refuseIfCancelled(await ask<RunView>(leader, (answer) => ({ kind: "resume", answer })));
      return { coordinator };
    },

    async cancel() {
      await ask<RunView>(leader, (answer) => ({ kind: "cancel", answer }));
      return { coordinator };
    },
  };
}

const STATES: Readonly<Record<RunPhase, RunState>> = {
  open: RunState.OPEN,
  sealed: RunState.SEALED,
  complete: RunState.COMPLETE,
  cancelled: RunState.CANCELLED,
};

function writeRun(
  view: RunView,
): Exclude<MessageInitShape<typeof GetRunResponseSchema>, { $typeName: string }> {
  const { phase, pauseReason, task, workers } = view;
  const failedByClass = Object.entries(view.failedByClass).filter(([, count]) => count > 0);
  return {
    state: pauseReason === null ? STATES[phase] : RunState.PAUSED,
    pauseReason: pauseReason ?? "",
    sealed: phase === "sealed" || phase === "complete",
    pending: BigInt(view.pending),
    delayed: BigInt(view.delayed),
    running: BigInt(view.running),
    executing: BigInt(view.executing),
    done: BigInt(view.done),
    failed: BigInt(view.failed),
    setAside: BigInt(view.setAside),
    setAsideItems: view.setAsideItems.map(({ id: itemId, key }) => ({ itemId, key })),
    failedByClass: Object.fromEntries(failedByClass.map(([name, count]) => [name, BigInt(count)])),
    failureMessages: view.failureMessages.map(({ class: failureClass, message, items, attempts, item }) => ({
      ...{ failureClass, message, itemId: item },
      ...{ items: BigInt(items), attempts: BigInt(attempts) },
    })),
    ...(task !== null && { taskDigest: task.digest, plugin: task.plugin, taskSummary: task.summary }),
    finishedPerSecond: [...view.finishedPerSecond],
    staleReports: BigInt(view.staleReports),
    conflicts: BigInt(view.conflicts),
    reassigned: BigInt(view.reassigned),
    workers: { ...workers },
  };
}
