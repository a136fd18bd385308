// The address of a Postgres, as a URL says it: `postgres://user@host:port,host:port/database`, with `sslmode` and `sslrootcert`. The
// password that may stand in it is kept apart, so that nothing that is shown or logged has it.
import { formatAddress, isHost, isLoopback, parseAddress } from "../base/address.ts";

export interface PostgresAddress {
  readonly user: string;
  /** In the order in which they are tried. */
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  readonly database: string;
  readonly tls: PostgresTls;
}

/** Off, or with a certificate that is checked, by a CA of the user's own where `caFile` names it. */
export type PostgresTls =
  | { readonly kind: "off" }
  | { readonly kind: "verified"; readonly caFile: string | undefined };

export interface PostgresUrl {
  readonly address: PostgresAddress;
  /** The one that stands in the URL. */
  readonly password: string | undefined;
}

const PORT = 5_432;
const SHAPE = /^postgres(?:ql)?:\/\/([^:@/?#]+)(?::([^@/?#]*))?@([^@/?#]+)\/([^/?#]+)(?:\?([^#]*))?$/;
const MODES: readonly (string | null)[] = ["disable", "verify-full", null];

/** Undefined when the text is no such URL. */
export function parsePostgresUrl(text: string): PostgresUrl | undefined {
  const [, user, password, hosts, database, query] = SHAPE.exec(text) ?? [];
  if (user === undefined || hosts === undefined || database === undefined) return undefined;
  const [plainUser, plainPassword, plainDatabase] = [user, password ?? "", database].map(decoded);
  const addresses = hosts.split(",").map(hostOf);
  const found = addresses.filter((address) => address !== undefined);
  if (!plainUser || plainPassword === undefined || !plainDatabase || found.length < addresses.length)
    return undefined;
  const tls = tlsOf(new URLSearchParams(query ?? ""), found);
  if (tls === undefined) return undefined;
  return {
    address: { user: plainUser, hosts: found, database: plainDatabase, tls },
    password: password === undefined ? undefined : plainPassword,
  };
}

/** As it may be shown: without password and parameters. */
export function formatPostgres({ user, hosts, database }: PostgresAddress): string {
  const [name, base] = [user, database].map(encodeURIComponent);
  return `postgres://${name}@${hosts.map(formatAddress).join(",")}/${base}`;
}

function hostOf(text: string): { host: string; port: number } | undefined {
  if (isHost(text)) return { host: text, port: PORT };
  const address = parseAddress(text);
  return address === undefined || address.port === 0 ? undefined : address;
}

/** A URL that says nothing of TLS: checked certificates, and none where every host is this machine. Undefined for what it may not say. */
function tlsOf(query: URLSearchParams, hosts: PostgresAddress["hosts"]): PostgresTls | undefined {
  const known = [...query.keys()].every((name) => name === "sslmode" || name === "sslrootcert");
  const [mode, caFile] = [query.get("sslmode"), query.get("sslrootcert") ?? undefined];
  if (!known || !MODES.includes(mode) || caFile?.startsWith("/") === false) return undefined;
  if (mode === "disable") return caFile === undefined ? { kind: "off" } : undefined;
  const isHere = hosts.every(({ host }) => isLoopback(host));
  return isHere && mode === null && caFile === undefined ? { kind: "off" } : { kind: "verified", caFile };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
