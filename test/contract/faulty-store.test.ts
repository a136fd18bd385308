import { systemClock } from "../../src/base/clock.ts";
import { noFaults } from "../../src/storage/faulty/fault-plan.ts";
import { FaultyStore } from "../../src/storage/faulty/faulty-store.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import { storeContract } from "./store.ts";

storeContract("faulty without faults", {
  open: async () =>
    new FaultyStore(new MemoryStore(), { plan: noFaults, clock: systemClock, afterFailure: "broken" }),
});
