// Damage to a closed database: to its files, in copies of it, or to one of its rows.
import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { seededRandom } from "../../src/base/random.ts";
import { openLevelStore } from "../../src/storage/level/level-store.ts";
import type { prefixRange } from "../../src/storage/store.ts";

export type RowRange = ReturnType<typeof prefixRange>;

/** The first row of the range has another last byte. Returns its key. */
export async function damageRow(path: string, range: RowRange): Promise<string> {
  const store = await openLevelStore({ path, holderName: "test", clock: systemClock });
  try {
    const [row] = await store.scan({ ...range, limit: 1 });
    if (row === undefined) throw new Error(`no row from ${range.from} on`);
    const value = Buffer.from(row.value);
    value[value.length - 1] = (value[value.length - 1] ?? 0) ^ 1;
    await store.commit({ puts: [{ key: row.key, value }], deletes: [], expect: [], durability: "sync" });
    return row.key;
  } finally {
    await store.close();
  }
}

async function filesOf(path: string, pattern: RegExp): Promise<string[]> {
  return (await readdir(path)).filter((name) => pattern.test(name)).map((name) => join(path, name));
}

/** The largest file of that kind in the directory. */
export async function fileOf(path: string, pattern: RegExp): Promise<string> {
  const sized = await Promise.all(
    (await filesOf(path, pattern)).map(async (file) => ({ file, size: (await readFile(file)).length })),
  );
  const [largest] = sized.sort((one, other) => other.size - one.size);
  if (largest === undefined) throw new Error(`no file like ${String(pattern)} in ${path}`);
  return largest.file;
}

/** A copy of the closed database at `from`, under `to`, that `damage` was done to. */
export async function damagedCopy(
  from: string,
  to: string,
  damage: (path: string) => Promise<void>,
): Promise<string> {
  await cp(from, to, { recursive: true });
  await damage(to);
  return to;
}

/** `cases` copies with one flipped bit each, in the largest file that matches, at places that `seed` draws. */
export async function flippedCopies(
  from: string,
  to: string,
  pattern: RegExp,
  { cases, seed }: { readonly cases: number; readonly seed: number },
): Promise<string[]> {
  const random = seededRandom(seed);
  const copies: string[] = [];
  for (let at = 0; at < cases; at++) {
    const [where, bit] = [random.unit(), Math.floor(random.unit() * 8)];
    const flip = async (path: string): Promise<void> => {
      const file = await fileOf(path, pattern);
      const bytes = await readFile(file);
      const offset = Math.floor(where * bytes.length);
      bytes[offset] = (bytes[offset] ?? 0) ^ (1 << bit);
      await writeFile(file, bytes);
    };
    copies.push(await damagedCopy(from, `${to}-${seed}-${at}`, flip));
  }
  return copies;
}
