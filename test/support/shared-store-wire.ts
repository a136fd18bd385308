// How a shared store and its clients talk: each call and each answer is a structured clone, in base64 on a line.
import type { Socket } from "node:net";
import { createInterface } from "node:readline";
import { deserialize, serialize } from "node:v8";
import type { Batch, CommitOutcome, Entry, ScanRange } from "../../src/storage/store.ts";

export type SharedCall =
  | { readonly kind: "hello"; readonly name: string }
  | { readonly kind: "get"; readonly key: string }
  | { readonly kind: "scan"; readonly range: ScanRange }
  | { readonly kind: "commit"; readonly batch: Batch };

export type SharedAnswer =
  | { readonly kind: "welcome"; readonly everWritten: boolean; readonly generation: string }
  | { readonly kind: "value"; readonly value: Uint8Array | null }
  | { readonly kind: "entries"; readonly entries: readonly Entry[] }
  | { readonly kind: "outcome"; readonly outcome: CommitOutcome };

export interface Numbered<Message> {
  readonly number: number;
  readonly message: Message;
}

export function sendLine(socket: Socket, message: Numbered<SharedCall | SharedAnswer>): void {
  if (socket.writable) socket.write(`${serialize(message).toString("base64")}\n`);
}

/** Calls `take` with each line, in order. */
export function readLines<Message>(socket: Socket, take: (message: Numbered<Message>) => void): void {
  const lines = createInterface({ input: socket });
  lines.on("line", (line) => {
    // Both ends are this file.
    take(deserialize(Buffer.from(line, "base64")) as Numbered<Message>);
  });
  // It says the socket's errors once more, and with nobody to hear them they would end the process.
  lines.on("error", () => undefined);
}
