import { expect } from "chai";
import { chmodSync, chownSync, mkdirSync, statSync } from "node:fs";
import { withLocalRun } from "../support/local-run.ts";

const DIRECTORY = "out.jsonl.rollout";
const STRANGER = 12_345;

describe("the directory of a run", () => {
  it("is refused when another user owns it, and is made private when this user owns it", async () => {
    await withLocalRun({ items: 1 }, async (place) => {
      const path = place.file(DIRECTORY);
      mkdirSync(`${path}/supervisor`, { recursive: true });
      for (const each of [path, `${path}/supervisor`]) chmodSync(each, 0o777);
      const { uid, gid } = statSync(path);
      // Nobody else can make it another's.
      if (uid === 0) {
        chownSync(path, STRANGER, STRANGER);
        const refused = await place.run();
        expect([refused.code, refused.stderr]).to.deep.equal([
          2,
          `error: ${path} is not to be trusted: it belongs to another user (uid ${STRANGER}) (use one of your own)\n`,
        ]);
        expect(await place.journal()).to.deep.equal([]);
        chownSync(path, uid, gid);
      }
      await place.runTo(0);
      const modes = [path, `${path}/supervisor`, `${path}/tls`, `${path}/state`].map(
        (each) => statSync(each).mode & 0o777,
      );
      expect(modes).to.deep.equal([0o700, 0o700, 0o700, 0o700]);
    });
  });
});
