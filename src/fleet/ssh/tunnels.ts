// The tunnels of a fleet: one to each host that has a worker, as long as it has one.
import type { Opened, TunnelOptions } from "./tunnel.ts";
import { Tunnel } from "./tunnel.ts";

export class Tunnels {
  readonly #options: TunnelOptions;
  readonly #tunnels = new Map<string, Tunnel>();

  constructor(options: TunnelOptions) {
    this.#options = options;
  }

  /** For a launch there: at the port of a worker that the host has, or at any. */
  open(host: string): Promise<Opened> {
    return this.#at(host, undefined).open();
  }

  /** As a host has said: it has a worker that looks for the coordinator at that port, or none. */
  keep(host: string, port: number | undefined): void {
    if (port !== undefined) void this.#at(host, port).open();
    else this.close(host);
  }

  close(host: string): void {
    this.#tunnels.get(host)?.close();
    this.#tunnels.delete(host);
  }

  closeAll(): void {
    for (const host of [...this.#tunnels.keys()]) this.close(host);
  }

  #at(host: string, port: number | undefined): Tunnel {
    const known = this.#tunnels.get(host);
    if (known !== undefined && (port === undefined || (known.port ?? port) === port)) return known;
    known?.close();
    const fresh = new Tunnel(this.#options, host, port);
    this.#tunnels.set(host, fresh);
    return fresh;
  }
}
