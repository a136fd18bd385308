// One row of the table of errors, and what rows of a kind have in common: the exit code, what a client may do, the code on the wire.

/** Exit codes of every command, documented in docs/errors.md. A fenced leader ends by SIGABRT and has none. */
export const EXIT = {
  done: 0,
  itemsFailed: 1,
  usage: 2,
  unreachable: 3,
  interrupted: 4,
  paused: 5,
  storage: 6,
  bug: 70,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** A client's choice for the same request: nothing, send it again to the same coordinator, or look for the leader. */
export type RetryClass = "never" | "same-leader" | "new-leader";

/** Connect's code by name; the transport turns it into the number. */
export type ConnectCodeName =
  | "InvalidArgument"
  | "FailedPrecondition"
  | "NotFound"
  | "PermissionDenied"
  | "Unauthenticated"
  | "Unavailable"
  | "ResourceExhausted"
  | "DeadlineExceeded"
  | "Aborted"
  | "DataLoss"
  | "Internal";

/** One error: what it says, and what follows from it. */
export interface ErrorRow {
  /** `{name}` stands for a value. One line. */
  readonly message: string;
  /** Advice in one line, with the same placeholders; and `{config}` where a command names the user's configuration. */
  readonly hint: string;
  readonly exit: ExitCode;
  readonly connect: ConnectCodeName;
  readonly retry: RetryClass;
}

export const usage = { exit: EXIT.usage, connect: "InvalidArgument", retry: "never" } as const;
export const storage = { exit: EXIT.storage, connect: "DataLoss", retry: "never" } as const;
export const unreachable = { exit: EXIT.unreachable, connect: "Unavailable", retry: "same-leader" } as const;
export const unknown = { exit: EXIT.unreachable, connect: "NotFound", retry: "never" } as const;
export const conflicting = { exit: EXIT.unreachable, connect: "FailedPrecondition", retry: "never" } as const;
export const refused = { exit: EXIT.unreachable, connect: "PermissionDenied", retry: "never" } as const;
