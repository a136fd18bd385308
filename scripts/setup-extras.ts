// Programs that some end to end tests use and npm does not bring: installed where that is possible. Elsewhere this says how to get them,
// and fails nothing: the test that needs one says so itself.
import { adviceOn, obtain } from "./extras.ts";
import type { Extra } from "./extras.ts";
import { SSHD_PACKAGE, sshdProgram } from "./sshd.ts";

const EXTRAS: readonly Extra[] = [
  { program: "faketime", aptPackage: "faketime", use: "a process whose clock is wrong by an hour" },
  { program: "strace", aptPackage: "strace", use: "a disk that answers with an error, or late" },
  { program: "chromium", aptPackage: "chromium", use: "the page of `rollout inspect`, in a real browser" },
  { program: "ip", aptPackage: "iproute2", use: "a network that has loopback alone" },
  { program: "zsh", aptPackage: "zsh", use: "the completion of commands in zsh" },
  { program: "fish", aptPackage: "fish", use: "the completion of commands in fish" },
  {
    program: "prometheus",
    aptPackage: "prometheus",
    use: "metrics, the dashboard and the alerts, with promtool",
    isService: true,
  },
  { program: "pgbouncer", aptPackage: "pgbouncer", use: "a pooler before a Postgres", isService: true },
  {
    program: "sshd",
    aptPackage: SSHD_PACKAGE,
    use: "hosts by ssh",
    isService: true,
    isHere: () => sshdProgram() !== undefined,
  },
];

const missing = obtain(EXTRAS);
for (const extra of missing) console.log(adviceOn(extra));
console.log(missing.length === 0 ? "all here" : `${missing.length} missing`);
