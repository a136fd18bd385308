import { systemClock } from "../../src/base/clock.ts";
import { openLevelStore } from "../../src/storage/level/level-store.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";
import { storeContract } from "./store.ts";

describe("on disk", () => {
  const directory = useTemporaryDirectory();
  let opened = 0;
  storeContract("LevelDB", {
    open: () =>
      openLevelStore({
        path: directory.file(`${opened++}`),
        holderName: "contract suite",
        clock: systemClock,
      }),
  });
});
