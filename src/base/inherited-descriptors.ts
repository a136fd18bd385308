// Descriptors that a process was given at its start and did not ask for: files of the program that started it, or of a shell.
import { closeSync, readFileSync, readdirSync } from "node:fs";

const STANDARD_STREAMS = 3;
/** O_CLOEXEC as Linux writes it, in octal. */
const CLOSE_ON_EXEC = 0o2000000;

/**
 * Closes every descriptor but the standard streams that this process would hand on to its children. Node opens its own so that
 * they are not handed on, and marks the first that it was given; what is left was inherited. Does nothing where there is no
 * /proc: libuv hands nothing on there.
 */
export function closeInherited(): void {
  for (const descriptor of openDescriptors())
    if (descriptor >= STANDARD_STREAMS && isHandedOn(descriptor)) close(descriptor);
}

function openDescriptors(): number[] {
  try {
    return readdirSync("/proc/self/fd").map(Number);
  } catch {
    return [];
  }
}

function isHandedOn(descriptor: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "utf8"))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    // The one that the list was read by.
    return false;
  }
}

function close(descriptor: number): void {
  try {
    closeSync(descriptor);
  } catch {
    // It is closed already.
  }
}
