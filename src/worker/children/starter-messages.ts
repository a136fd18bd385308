// What a worker and its starter say to each other, beside the streams that travel with `Handed`.

/** Of one start; `id` is in every answer to it. */
export interface StartMessage {
  readonly id: number;
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** From standard input on; what is not a pipe is /dev/null. */
  readonly streams: readonly StreamKind[];
}

export type StreamKind = "pipe" | "ignore";

export type StarterMessage =
  /** With one end of a stream. `at`: its descriptor in the child. */
  | { readonly kind: "handed"; readonly id: number; readonly at: number }
  /** After the last stream. */
  | { readonly kind: "started"; readonly id: number; readonly pid: number }
  | { readonly kind: "failed"; readonly id: number; readonly failure: StartFailure }
  | {
      readonly kind: "exited";
      readonly id: number;
      readonly code: number | null;
      readonly signal: NodeJS.Signals | null;
    };

export interface StartFailure {
  /** As the system calls it; undefined for what did not come to it. */
  readonly errno: string | undefined;
  readonly message: string;
  /** An argument or a variable has a NUL byte. */
  readonly hasNul: boolean;
}
