// Programs that some end to end tests use and npm does not bring. They are installed where that is possible (Debian, as
// root); elsewhere this says how to get them, and fails nothing: the test that needs one says so itself.
import { spawnSync } from "node:child_process";

interface Extra {
  readonly program: string;
  readonly aptPackage: string;
  readonly use: string;
}

const EXTRAS: readonly Extra[] = [
  { program: "faketime", aptPackage: "faketime", use: "a process whose clock is wrong by an hour" },
  { program: "strace", aptPackage: "strace", use: "a disk that answers with an error, or late" },
  { program: "zsh", aptPackage: "zsh", use: "the completion of commands in zsh" },
  { program: "fish", aptPackage: "fish", use: "the completion of commands in fish" },
];
const LOCK_WAIT = "DPkg::Lock::Timeout=60";

function isHere(program: string): boolean {
  return spawnSync("which", [program]).status === 0;
}

function apt(...args: string[]): boolean {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  return spawnSync("apt-get", ["-qq", "-o", LOCK_WAIT, ...args], { env, stdio: "ignore" }).status === 0;
}

const missing = EXTRAS.filter(({ program }) => !isHere(program));
const packages = missing.map(({ aptPackage }) => aptPackage);
const install = ["install", "--yes", "--no-install-recommends", ...packages];
if (missing.length > 0 && process.getuid?.() === 0 && isHere("apt-get") && !apt(...install)) {
  // An image without package lists: fetch them, once.
  if (apt("update")) apt(...install);
}
const still = missing.filter(({ program }) => !isHere(program));
for (const { program, aptPackage, use } of still) {
  console.log(`not here: ${program} (${use}); on Debian: apt-get install ${aptPackage}`);
}
console.log(still.length === 0 ? "all here" : `${still.length} missing`);
