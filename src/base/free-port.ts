// A port of loopback where nothing listens at this moment, for a server that is about to start.
import { createServer } from "node:net";

/** Rejects when the system has none to give. Another process may take it before the server does. */
export function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
