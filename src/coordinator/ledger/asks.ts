// The asks of a result of an actor's item, beside the new state: they are committed with that, or none of them is. The bytes are a
// worker's, and nobody here reads them.

export interface SetTimer {
  readonly id: string;
  readonly delayMs: number;
  readonly event: Uint8Array;
  /** The key that the event is sent to; empty: the actor itself. */
  readonly to: string;
  readonly isOptional: boolean;
}

/** An invocation or a child to start. */
export interface Start {
  readonly id: string;
  readonly source: string;
  readonly input: Uint8Array;
}

export interface Send {
  readonly to: string;
  readonly event: Uint8Array;
  /** It is passed over where there is no such actor, or a final one. */
  readonly isOptional: boolean;
}

export interface RunAction {
  readonly type: string;
  readonly params: Uint8Array;
}

export interface Final {
  /** For a child's parent. */
  readonly output: Uint8Array;
  /** It has failed with this, in place of its output. */
  readonly error: string | undefined;
  /** It is forgotten after so long; undefined: it stays. */
  readonly idleTtlMs: number | undefined;
}

/** In the order in which it is carried out. */
export interface Asks {
  /** Ids of invocations and children that are left. */
  readonly stopped: readonly string[];
  /** Ids of timers that are left. */
  readonly cancelled: readonly string[];
  readonly timers: readonly SetTimer[];
  readonly invocations: readonly Start[];
  readonly children: readonly Start[];
  readonly sends: readonly Send[];
  readonly actions: readonly RunAction[];
  readonly final: Final | undefined;
}

/** @internal */
export const NO_ASKS: Asks = {
  stopped: [],
  cancelled: [],
  timers: [],
  invocations: [],
  children: [],
  sends: [],
  actions: [],
  final: undefined,
};
