// `host:port`, with IPv6 in brackets. A name is only looked at for its form; whether it exists is found out on use.
import { isIP, isIPv4, isIPv6, createServer } from "node:net";

export interface Address {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

const PORT_MAX = 65_535;
const HOST_NAME =
  /^(?=.{1,253}$)[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,62})(?:\.[A-Za-z0-9_][A-Za-z0-9_-]{0,62})*\.?$/;

/** Undefined when the text is no address. Port 0 means "any free one" and is for listening only. */
export function parseAddress(text: string): Address | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > PORT_MAX) return undefined;
  const [, bracketed, plain] = match;
  if (bracketed !== undefined) return isIPv6(bracketed) ? { host: bracketed, port } : undefined;
  return plain !== undefined && isHost(plain) && !isIPv6(plain) ? { host: plain, port } : undefined;
}

/** True for an IP address or the form of a DNS name. */
export function isHost(text: string): boolean {
  if (isIP(text) !== 0) return true;
  // 999.1.1.1 has the form of a name and can only be a mistyped IPv4 address.
  return HOST_NAME.test(text) && !/^[\d.]+$/.test(text);
}

export function formatAddress(address: Address): string {
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

/** For messages: one address, or several with commas. */
export function showAddresses(address: string | readonly string[]): string {
  return typeof address === "string" ? address : address.join(", ");
}

/** True for an address, or the name of it, that means the machine that uses it. */
export function isLoopback(host: string): boolean {
  return (
    host === "localhost" ||
    (isIPv4(host) && host.startsWith("127.")) ||
    (isIPv6(host) && /^[0:]*:0*1$/.test(host))
  );
}

/** Where this machine reaches what listens on `listen`: the address itself, or loopback when that is "every interface". */
export function localAddressOf(listen: Address): Address {
  if (isIPv4(listen.host) && /^0+(\.0+){3}$/.test(listen.host)) return { ...listen, host: "127.0.0.1" };
  if (isIPv6(listen.host) && /^[0:]+$/.test(listen.host)) return { ...listen, host: "::1" };
  return listen;
}

// A port of loopback where nothing listens at this moment, for a server that is about to start.

/** Rejects when the system has none to give. Another process may take it before the server does. */
export function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    // Somebody may look there for who had the port before; the server would be closed when they leave, and not sooner.
    const server = createServer((socket) => void socket.destroy());
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
