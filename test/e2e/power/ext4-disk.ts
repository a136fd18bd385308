// A disk that can be photographed while it is written to: an ext4 in a file, mounted through a loop device. The file lies on another ext4 that
// `fsfreeze` stops for the moment of the copy, so an image has what the kernel had written to the disk at one instant: neither what
// the page cache still kept, nor half of a write. Root alone may mount.
import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const execute = promisify(execFile);
const DISK_MIB = 128;
const HOST_MIB = 2 * DISK_MIB;

export class Ext4Disk {
  /** Where its files are. */
  readonly path: string;
  readonly #host: string;

  private constructor(path: string, host: string) {
    this.path = path;
    this.#host = host;
  }

  /** An empty disk in a directory of its own. */
  static async make(directory: string): Promise<Ext4Disk> {
    const [path, host] = [join(directory, "disk"), join(directory, "host")];
    for (const made of [path, host]) await mkdir(made, { recursive: true });
    await makeFileSystem(join(directory, "host.img"), HOST_MIB);
    await execute("mount", ["-o", "loop", join(directory, "host.img"), host]);
    await makeFileSystem(join(host, "disk.img"), DISK_MIB);
    await execute("mount", ["-o", "loop", join(host, "disk.img"), path]);
    return new Ext4Disk(path, host);
  }

  /** The disk as it is at this instant, in a file. */
  async photograph(image: string): Promise<void> {
    await execute("fsfreeze", ["--freeze", this.#host]);
    try {
      await execute("cp", ["--sparse=always", join(this.#host, "disk.img"), image]);
    } finally {
      await execute("fsfreeze", ["--unfreeze", this.#host]);
    }
  }

  async remove(): Promise<void> {
    await execute("umount", [this.path]);
    await execute("umount", [this.#host]);
  }
}

/** Gives `use` the files of an image, as a machine finds them that starts again: ext4 has replayed its journal. */
export async function withImage(
  image: string,
  directory: string,
  use: (path: string) => Promise<void>,
): Promise<void> {
  await mkdir(directory, { recursive: true });
  await execute("mount", ["-o", "loop", image, directory]);
  try {
    await use(directory);
  } finally {
    await execute("umount", [directory]);
  }
}

async function makeFileSystem(file: string, mib: number): Promise<void> {
  await execute("truncate", ["--size", `${mib}M`, file]);
  await execute("mkfs.ext4", ["-q", file]);
}
