import { fileURLToPath } from "node:url";
import { parseManifest } from "../../../src/config/manifest.ts";
import { HttpBackend } from "../../../src/worker/backends/http/http-backend.ts";
import { KILL_GRACE_MS, OUTPUT_LIMIT } from "../../support/backend-case.ts";
import type { BackendCase } from "../../support/backend-case.ts";

const PROGRAM = fileURLToPath(new URL("./item-server-program.ts", import.meta.url));
const MANIFEST = `
name = "items"
version = "1"
backend = "http"
[http]
url = "http://127.0.0.1:{port}"
launch = ${JSON.stringify([process.execPath, PROGRAM, "{port}"])}
kill_grace = "${KILL_GRACE_MS}ms"
`;

/** Its items are executed by a server that it launches itself. */
export const backendCase: BackendCase = {
  name: "http",
  // A request that hangs in a server is not ended by hanging up, so that is left to http-backend.test.ts.
  can: new Set(["list", "echo", "fail", "crash", "big", "garble", "meet"]),
  open: ({ directory, ...surroundings }) => {
    const manifest = parseManifest(`${directory}/items.toml`, MANIFEST);
    if (manifest.backend !== "http") throw new Error("it is what was written");
    return new HttpBackend({
      ...surroundings,
      spec: manifest.spec,
      slots: 4,
      maxOutputBytes: OUTPUT_LIMIT,
      workingDirectory: directory,
    });
  },
  executesIn: "children",
};
