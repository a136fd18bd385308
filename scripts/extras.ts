// Programs that some tests and smokes use and npm does not bring. They are installed where that is possible (Debian, as root); for
// others there is a word on how to get them.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

export interface Extra {
  readonly program: string;
  readonly aptPackage: string;
  readonly use: string;
  /** Its package starts it as a service where there is a manager of services: there it is not installed unasked. */
  readonly isService?: true;
  /** Where it lies when that is not in the PATH. */
  readonly isHere?: () => boolean;
}

const LOCK_WAIT = "DPkg::Lock::Timeout=60";

/** Installs what is missing. Returns what is missing still. */
export function obtain(extras: readonly Extra[]): readonly Extra[] {
  const startsServices = existsSync("/run/systemd/system");
  const packages = extras
    .filter((extra) => !isHere(extra))
    .flatMap(({ aptPackage, isService }) => (isService === true && startsServices ? [] : [aptPackage]));
  const install = ["install", "--yes", "--no-install-recommends", ...packages];
  if (packages.length > 0 && process.getuid?.() === 0 && hasProgram("apt-get") && !apt(...install)) {
    // An image without package lists: fetch them, once.
    if (apt("update")) apt(...install);
  }
  return extras.filter((extra) => !isHere(extra));
}

/** For people: how to get it. */
export function adviceOn({ program, use, aptPackage }: Extra): string {
  return `not here: ${program} (${use}); on Debian: apt-get install ${aptPackage}`;
}

function isHere({ program, isHere: look }: Extra): boolean {
  return look?.() ?? hasProgram(program);
}

function hasProgram(program: string): boolean {
  return spawnSync("which", [program]).status === 0;
}

function apt(...args: string[]): boolean {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  return spawnSync("apt-get", ["-qq", "-o", LOCK_WAIT, ...args], { env, stdio: "ignore" }).status === 0;
}
