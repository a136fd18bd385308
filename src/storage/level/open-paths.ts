// The databases that this process has open. LevelDB's lock belongs to the process, and a second open in the same process,
// even one that fails, silently gives it away (docs/adr/0009): so a second open must never get as far as LevelDB.
//
// The one module-level state of the product: what it guards, the lock of a process, is one per process too, and a
// registry that had to be passed around could be forgotten by exactly the caller that it is there to stop.
import { stat } from "node:fs/promises";

const openPaths = new Map<string, string>();

export type Reservation =
  | { readonly kind: "reserved"; release(): void }
  /** This process has it open; `holder` is who, as given with the first reservation. */
  | { readonly kind: "open"; readonly holder: string };

/**
 * Reserves a directory, by its real path and by its inode (a bind mount has another path). Taken in one step, without
 * waiting between look and take, once the inode is known. `release` is idempotent.
 */
export async function reserveOpenPath(realPath: string, holder: string): Promise<Reservation> {
  const { dev, ino } = await stat(realPath, { bigint: true });
  const names = [`path ${realPath}`, `inode ${dev}:${ino}`];
  for (const name of names) {
    const present = openPaths.get(name);
    if (present !== undefined) return { kind: "open", holder: present };
  }
  for (const name of names) openPaths.set(name, holder);
  let held = true;
  return {
    kind: "reserved",
    release() {
      if (held) for (const name of names) openPaths.delete(name);
      held = false;
    },
  };
}
