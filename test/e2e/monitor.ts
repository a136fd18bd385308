// Answers of a process at its monitor's port, which its log names.
import type { RolloutProcess } from "../support/rollout-process.ts";

export interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** `path` answers with JSON. */
export async function askMonitor(process: RolloutProcess, path: string): Promise<Answer> {
  const { address } = await process.logLine({ message: "monitoring is answered" });
  const response = await fetch(`http://${String(address)}${path}`);
  return { status: response.status, body: (await response.json()) as Answer["body"] };
}
