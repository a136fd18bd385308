// The course of one connection of a client, as codes and facts: the material from which a failed call is explained.

/**
 * How far a connection got. Under TLS 1.3 a client is `secured` before the server has looked at its certificate; that it was
 * accepted shows in the server's first frame (`serving`).
 */
export type ConnectionPhase = "connecting" | "securing" | "secured" | "serving";

export interface ConnectionReport {
  readonly phase: ConnectionPhase;
  readonly ended: boolean;
  /** The error that ended it, with its code: of the system, of TLS, or of our own check of the coordinator's certificate. */
  readonly error: Error | undefined;
  readonly errorCode: string | undefined;
  /** The HTTP/2 code with which the server said goodbye, other than the friendly one. */
  readonly goawayCode: number | undefined;
  /** Whether this connection and the one before it were both closed by the server as soon as they were `secured`. */
  readonly refusedTwice: boolean;
}

export class ConnectionRecord implements ConnectionReport {
  phase: ConnectionPhase = "connecting";
  ended = false;
  error: Error | undefined;
  errorCode: string | undefined;
  goawayCode: number | undefined;
  readonly #previous: ConnectionReport | undefined;

  constructor(previous: ConnectionReport | undefined) {
    // Facts, not the record itself: records must not form a chain that grows for ever.
    this.#previous = previous && { ...previous, refusedTwice: false };
  }

  /** The socket's error: its end is certain, though it is told in a later turn. */
  failed(error: Error): void {
    this.ended = true;
    this.error = error;
    this.errorCode = "code" in error && typeof error.code === "string" ? error.code : undefined;
  }

  get refusedTwice(): boolean {
    return isShutOut(this) && this.#previous !== undefined && isShutOut(this.#previous);
  }
}

function isShutOut(report: Pick<ConnectionReport, "ended" | "phase">): boolean {
  return report.ended && report.phase === "secured";
}
