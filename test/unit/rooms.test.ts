// The first lines of a room's main file are the index of the room: each file in it is named there, as `name` or as name.ts.
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { allRooms, FLOORS, HALL } from "../../scripts/layers.ts";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

function filesOf(room: string): string[] {
  return globSync(join(REPOSITORY, room, "*.ts"));
}

/** The files that the first comment of a file does not name, of those beside it. */
function unnamedBy(file: string, files: readonly string[]): string[] {
  const text = readFileSync(file, "utf8");
  const head = text.slice(0, text.search(/^(?!\/\/)/mu));
  const names = files.filter((each) => each !== file).map((each) => basename(each, ".ts"));
  return names.filter((name) => !new RegExp(`\`${name}\`|(?<![\\w-])${name}\\.ts`, "u").test(head));
}

describe("rooms", () => {
  const rooms = Object.keys(FLOORS).flatMap((large) =>
    allRooms().filter((room) => room.startsWith(`${large}/`)),
  );

  for (const room of rooms)
    it(`${room}: the first lines of one of its files name all of the others`, () => {
      const files = filesOf(room.replace(`/${HALL}`, ""));
      const unnamed = files.map((file) => unnamedBy(file, files));
      expect(unnamed.toSorted((one, other) => one.length - other.length)[0]).to.deep.equal([]);
    });

  it("are read in a way that would notice a file that no index names", () => {
    const files = filesOf("src/runtime");
    expect(files.length).to.be.above(3);
    for (const file of files) expect(unnamedBy(file, files), file).not.to.be.empty;
  });
});
