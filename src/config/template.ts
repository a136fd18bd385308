// The file that `rollout init` writes: the least that coordinator, workers and commands on one machine need, and where to
// find the rest.
import type { RunId } from "../base/ids.ts";

/** Relative to the file. */
export const TEMPLATE_TLS_DIR = "./data/tls";

/** The file's text. It resolves as it is. */
export function configTemplate(runId: RunId): string {
  return `# rollout: read by the coordinator, by workers and by every other command.
# Paths are relative to this file. All settings: docs/CONFIGURATION.md

# The run. Certificates and the database are bound to it.
run_id = "${runId}"

[storage]
# The coordinator's database, on a local disk.
path = "./data/rollout.db"

[transport]
# Where the coordinator listens. Workers on other machines need an address that they can reach.
listen_addr = "127.0.0.1:50051"
# Certificates and keys; whoever reads ca.key.pem can make more of them.
tls_dir = "${TEMPLATE_TLS_DIR}"

[worker]
# How many items one worker executes at once.
slots = 1
# What executes them, a manifest each (docs/plugins.md); without any, a mock that gives items back.
# plugins = ["./infer.toml"]
`;
}
