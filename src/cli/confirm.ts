// A question to whoever sits at the terminal, before something that cannot be undone.
import { createInterface } from "node:readline/promises";

/** True when a word of agreement was typed. Only where both standard input and standard error are terminals. */
export async function confirm(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await new Promise<string>((resolve) => {
      // Ctrl-C and the end of input say no.
      lines.once("SIGINT", () => resolve(""));
      lines.once("close", () => resolve(""));
      void lines.question(question).then(resolve, () => resolve(""));
    });
    return /^y(?:es)?$/i.test(answer.trim());
  } finally {
    lines.close();
  }
}

/** Whether there is somebody to ask. */
export function canAsk(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}
