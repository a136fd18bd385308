import { systemClock } from "../../src/base/clock.ts";
import { openLevelStore } from "../../src/storage/level/level-store.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import { SharedStoreServer } from "../support/shared-store-server.ts";
import { openSharedStore } from "../support/shared-store-client.ts";
import { useClosers } from "../support/closers.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";
import { leaseContract } from "./lease.ts";
import { storeContract } from "./store.ts";

leaseContract("memory", { open: async () => new MemoryStore() });

describe("on disk", () => {
  const directory = useTemporaryDirectory();
  let opened = 0;
  leaseContract("LevelDB", {
    open: () =>
      openLevelStore({ path: directory.file(`${opened++}`), holderName: "lease suite", clock: systemClock }),
  });
});

describe("shared by several processes", () => {
  const closeLater = useClosers();
  const open = async (): ReturnType<typeof openSharedStore> => {
    const server = await SharedStoreServer.start(new MemoryStore());
    closeLater(() => server.close());
    return openSharedStore(server.address, "a");
  };
  storeContract("shared", { open });
  leaseContract("shared", { open });
});
