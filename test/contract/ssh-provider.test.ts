// Hosts by ssh, against a real sshd on loopback with two names for this machine; ssh-trouble.test.ts has what goes wrong.
import { useTemporaryDirectory } from "../support/temporary-directory.ts";
import { killWorkers, providerContract, workerLines } from "./provider.ts";
import type { ProviderRig } from "./provider.ts";
import { HostRig, useSshd } from "./ssh-rig.ts";

const LEAK = "-----BEGIN PRIVATE KEY-----\\npa55\\n-----END PRIVATE KEY-----";
const BUSY = "01JZ8Q6T0C5V9W3R7X2Y4B6D9Z";

/** A client that says hello, is told a script, and answers this, with that code. */
function answers(text: string, code: number): string {
  return `echo "$hello"\nscript=$(cat)\nprintf '%s-begin\\n${text}\\n\\n%s-end ${code}\\n' "$hello" "$hello"`;
}

describe("ssh", () => {
  const directory = useTemporaryDirectory();
  const sshd = useSshd(["a", "b"]);

  afterEach(() => killWorkers(directory.path));

  providerContract("ssh, by an sshd on loopback", async (): Promise<ProviderRig> => {
    const rig = new HostRig(directory, sshd());
    const says = (name: string, text: string, timeLimitMs = 60_000) =>
      rig.provider({ hosts: ["a"], client: rig.fake(name, text), timeLimitMs });
    const through = (name: string, text: string) =>
      rig.provider({ client: [...rig.fake(name, text), ...rig.client] });
    return {
      provider: rig.provider(),
      losesAnswers: through(
        "loses",
        `"$@" | { IFS= read -r line; echo "$line"; cat >/dev/null; }\nkill -s KILL $$`,
      ),
      broken: {
        "exits with 1": says("fails", "echo no >&2; exit 1"),
        "is killed": says("killed", "kill -s KILL $$"),
        "answers words": says("words", 'echo "$hello"; cat >/dev/null; echo nothing there'),
        "answers half": says("half", `echo "$hello"; cat >/dev/null; printf '%s-begin\\n${BUSY} r' "$hello"`),
        "answers 10 MiB": says("flood", 'echo "$hello"; cat >/dev/null; head -c 10485760 /dev/zero'),
        "runs no command": says("shut", "echo this account is closed"),
        "is not there": rig.provider({ client: [directory.file("absent")] }),
        "takes too long": says("sleeps", "sleep 600", 200),
      },
      oddWord: through("odd", `"$@" | sed -u 's/ running/ REVOKED/'`),
      tellsSecrets: says(
        "tells",
        `${answers(LEAK, 0).replace("printf", "case $script in *'tail -c'*) printf")} ;;
*) printf '%s-begin\\nno such image at https://pa55@host/\\n\\n%s-end 1\\n' "$hello" "$hello" ;; esac`,
      ),
      full: says("full", answers(`busy ${BUSY}`, 1)),
      fullReason: "each host that works has its worker",
      refuses: says("refuses", answers("no such image", 1)),
      refusedReason: "a: no such image",
      workers: async () => workerLines(rig.home),
      warnings: () => rig.warnings,
    };
  });
});
