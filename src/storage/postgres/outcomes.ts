// The meaning of an error of the driver or of the server for the statement that met it: by the code that the server gives, never by text.
import pg from "pg";

/**
 * `again`: nothing was written, and the same may succeed now (a serialization failure, a deadlock, a lock that came too late, a
 * server without room for the moment).
 * `lost`: the connection is gone or good for nothing; whether the statement took effect has to be found out on another one.
 * `refused`: nothing was written, and trying again changes nothing.
 */
export type Meaning = "again" | "lost" | "refused";

/** The connection ended, was ended, or answers no more. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

/** The server gave up waiting for its standby: committed there, and nowhere else. */
export const UNREPLICATED = "01000";

/** By the whole code, or by its class, the first two characters. */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  "40001": "again",
  "40P01": "again",
  "55P03": "again",
  "57014": "again",
  "53": "again",
  // The server was demoted: another of the hosts may have its place.
  "25006": "lost",
  "25P03": "lost",
  "25P04": "lost",
  // A pooler gave the rest of the transaction to another session.
  "25P01": "lost",
  "40003": "lost",
  "57": "lost",
  "58": "lost",
  "08": "lost",
};

export function meaningOf(error: unknown): Meaning {
  if (!(error instanceof pg.DatabaseError)) return "lost";
  const code = error.code ?? "";
  return MEANINGS[code] ?? MEANINGS[code.slice(0, 2)] ?? "refused";
}

/** Codes of a connection that no waiting makes better: wrong password, no such role or database, no permission. */
const HOPELESS = /^(?:28|3D|3F|42|0A)/;

export function isHopeless(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && HOPELESS.test(error.code ?? "");
}

/** Two processes that made the same table at once: one of them finds it made when it looks again. */
const MADE_MEANWHILE: ReadonlySet<string | undefined> = new Set([
  "23505",
  "42P06",
  "42P07",
  "42710",
  "XX000",
]);

/** Somebody else held what was needed for longer than was to be waited. */
export function isHeldUp(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === "55P03";
}

export function isMadeMeanwhile(error: unknown): boolean {
  return (
    error instanceof pg.DatabaseError && (MADE_MEANWHILE.has(error.code) || meaningOf(error) === "again")
  );
}
