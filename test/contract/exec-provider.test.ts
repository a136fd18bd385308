import { expect } from "chai";
import { chmodSync, readdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/base/clock.ts";
import { isUlid } from "../../src/base/ids.ts";
import { runBounded } from "../../src/fleet/bounded-child.ts";
import { ExecProvider } from "../../src/fleet/exec/exec-provider.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";
import { commandLine, IDLE_WORKER, killWorkers, LABELS, providerContract, workerLines } from "./provider.ts";
import type { ProviderRig } from "./provider.ts";

const LOCAL = fileURLToPath(new URL("../../examples/fleet/local", import.meta.url));
const ODD = '{"allocations":[{"allocation":"01JZ8Q6T0C5V9W3R7X2Y4B6D90","ref":"7","state":"REVOKED"}]}';

const LEAK = JSON.stringify({ log: "-----BEGIN PRIVATE KEY-----\npa55\n-----END PRIVATE KEY-----\n" });

describe("exec", () => {
  const directory = useTemporaryDirectory();

  function program(name: string, text: string): string {
    const path = directory.file(name);
    writeFileSync(path, text);
    chmodSync(path, 0o755);
    return path;
  }

  function provider(
    command: readonly [string, ...string[]],
    log = new RecordingLogger(),
    timeLimitMs = 60_000,
  ): ExecProvider {
    return new ExecProvider({
      command,
      directory: directory.path,
      timeLimitMs,
      isId: isUlid,
      clock: systemClock,
      log,
    });
  }

  let opened = 0;
  const local = (): [string, ...string[]] => {
    const worker = program(`worker-${++opened}`, IDLE_WORKER);
    return [
      "env",
      `ROLLOUT_FLEET_DIR=${directory.file(`fleet-${opened}`)}`,
      `ROLLOUT_PROGRAM=${worker}`,
      LOCAL,
    ];
  };

  afterEach(() => killWorkers(directory.path));

  providerContract("exec, by examples/fleet/local", async (): Promise<ProviderRig> => {
    const log = new RecordingLogger();
    const command = local();
    const says = (name: string, text: string): ExecProvider =>
      provider([program(name, `#!/bin/sh\n${text}`)], log);
    return {
      provider: provider(command, log),
      losesAnswers: provider(
        [program("loses", `#!/bin/sh\n"$@" >/dev/null\nkill -s KILL $$\n`), ...command],
        log,
      ),
      broken: {
        "exits with 1": says("fails", "echo no >&2; exit 1"),
        "is killed": says("killed", "kill -s KILL $$"),
        "answers no JSON": says("words", "echo nothing there"),
        "answers half": says("half", `printf '{"allocations":['`),
        "answers another thing": says("other", "echo '[]'"),
        "answers 10 MiB": says("flood", "head -c 10485760 /dev/zero"),
        "is not there": provider([directory.file("absent")], log),
        "takes too long": provider([program("sleeps", "#!/bin/sh\nsleep 600")], log, 200),
      },
      oddWord: says("odd", `echo '${ODD}'`),
      tellsSecrets: says(
        "tells",
        `[ "$1" = log ] || { echo "no such image at https://pa55@host/" >&2; exit 1; }\nprintf '%s' '${LEAK}'`,
      ),
      full: says("full", "echo the queue is full >&2; exit 75"),
      fullReason: "the queue is full",
      refuses: says("refuses", "echo no such image >&2; exit 1"),
      refusedReason: "no such image",
      workers: async () => workerLines(directory.path),
      warnings: () => log.lines.filter(({ level }) => level === "warn").map(({ message }) => message),
    };
  });

  it("takes no allocation without an id of ours, and none of those that say that they are another run's", async () => {
    const entry = { allocation: "01JZ8Q6T0C5V9W3R7X2Y4B6D90", state: "running" };
    const list = (name: string, ...allocations: object[]) =>
      provider([program(name, `#!/bin/sh\necho '${JSON.stringify({ allocations })}'`)]).list(LABELS);
    expect(await list("named", { ...entry, allocation: "job 7" })).to.have.property("kind", "unknown");
    expect(
      await list(
        "foreign",
        entry,
        { ...entry, store: LABELS.run },
        { ...entry, state: "queued", run: LABELS.run },
      ),
    ).to.have.nested.property("allocations.length", 2);
  });

  it("names a program that cannot be started", async () => {
    for (const missing of ["./nope", "no-such-program"])
      expect(await provider([missing]).check(LABELS)).to.deep.include({
        kind: "refused",
        reason: `${missing}: it does not exist`,
      });
  });

  it("ends the whole group of a program that takes too long, and waits for no pipe that others hold", async () => {
    const told = program("leaves", '#!/bin/sh\nsleep 600 &\necho $!\n[ -z "$1" ] || sleep 600');
    for (const words of [[], ["and waits"]]) {
      const outcome = await runBounded(
        {
          ...{ command: [told, ...words], directory: directory.path, input: "" },
          ...{ timeLimitMs: words.length === 0 ? 60_000 : 500, outputBytesMax: 1_000 },
        },
        systemClock,
      );
      expect(outcome.kind).to.equal(words.length === 0 ? "exited" : "killed");
      if (outcome.kind === "exited") expect(commandLine(outcome.stdout.trim())).to.equal("");
    }
  });

  it("does nothing for a coordinator that died while it asked", async () => {
    const whole = JSON.stringify({
      protocol: 1,
      ...LABELS,
      allocation: "01JZ8Q6T0C5V9W3R7X2Y4B6D90",
      slots: 1,
    });
    for (const input of ["", whole.slice(0, 40), whole.slice(0, -1)]) {
      const request = { command: [LOCAL, "launch"], directory: directory.path, input } as const;
      const limits = { timeLimitMs: 60_000, outputBytesMax: 4_096 };
      const outcome = await runBounded({ ...request, ...limits }, systemClock);
      expect(outcome).to.include({ kind: "exited", code: 65, stderr: "the request is cut\n" });
    }
    expect(readdirSync(directory.path)).to.deep.equal([]);
  });
});
