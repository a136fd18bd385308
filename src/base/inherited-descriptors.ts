// Descriptors that a process was given at its start and did not ask for: files of the program that started it, or of a shell.
import { closeSync } from "node:fs";
import { descriptorFlags, openDescriptors } from "./process-table.ts";

const STANDARD_STREAMS = 3;
/** O_CLOEXEC as Linux writes it, in octal. */
const CLOSE_ON_EXEC = 0o2000000;

/**
 * Closes every descriptor but the standard streams that this process would hand on to its children. Node opens its own so that
 * they are not handed on, and marks the first that it was given; what is left was inherited.
 */
export function closeInherited(): void {
  for (const descriptor of openDescriptors() ?? [])
    if (descriptor >= STANDARD_STREAMS && isHandedOn(descriptor)) close(descriptor);
}

function isHandedOn(descriptor: number): boolean {
  const flags = descriptorFlags(descriptor);
  return flags !== undefined && (flags & CLOSE_ON_EXEC) === 0;
}

function close(descriptor: number): void {
  try {
    closeSync(descriptor);
  } catch {
    // It is closed already.
  }
}
