import { expect } from "chai";
import { RolloutError } from "../../../src/base/errors.ts";
import type { ErrorCode } from "../../../src/base/errors.ts";
import type { ConfigSources } from "../../../src/config/gather.ts";
import { resolveConfig } from "../../../src/config/resolve.ts";
import { SETTING_KEYS, settingOf, environmentName } from "../../../src/config/schema.ts";
import type { ConfigRole } from "../../../src/config/settings/setting.ts";

const RUN_ID = "01JZ0000000000000000000000";
const LEAST = `run_id = "${RUN_ID}"
[storage]
path = "./data/rollout.db"
[transport]
listen_addr = "127.0.0.1:50051"
tls_dir = "./data/tls"
`;

function sources(text: string, more: Partial<ConfigSources> = {}): ConfigSources {
  return {
    file: { path: "/etc/rollout/rollout.toml", text },
    environment: {},
    flags: {},
    workingDirectory: "/home/somebody",
    topics: ["worker_heartbeat", "worker_failed"],
    ...more,
  };
}

interface Refusal {
  readonly code: ErrorCode;
  readonly text: string;
  readonly hint: string;
}

function refusal(text: string, more: Partial<ConfigSources> = {}, role: ConfigRole = "coordinator"): Refusal {
  try {
    resolveConfig(role, sources(text, more));
  } catch (error) {
    if (error instanceof RolloutError) return { code: error.code, text: error.message, hint: error.hint };
    throw error;
  }
  throw new Error("the configuration was accepted");
}

describe("resolving the configuration", () => {
  it("reads what a run may cost: a number of failures as it is written, a share as text", () => {
    const run = (text: string): unknown =>
      resolveConfig("coordinator", sources(`${LEAST}[run]\n${text}`)).run;
    const all = 'max_attempts = 5\nmax_lost = 2\nitem_timeout = "90s"\nmax_fails = "5%"\ntime_limit = "2h"';
    expect(run(all)).to.deep.equal({
      maxAttempts: 5,
      maxLost: 2,
      itemTimeoutMs: 90_000,
      maxFails: { kind: "share", percent: 5 },
      timeLimitMs: 7_200_000,
    });
    expect(run("max_fails = 12")).to.deep.include({ maxFails: { kind: "count", count: 12 } });
    for (const value of ["0", "1.5", "-1", "true", '"some"'])
      expect(refusal(`${LEAST}[run]\nmax_fails = ${value}`)).to.include({
        code: "config_invalid_value",
        hint: 'allowed: a whole number from 1, a percentage such as "5%", or none',
      });
  });

  it("takes the least coordinator file and fills in the defaults", () => {
    expect(resolveConfig("coordinator", sources(LEAST))).to.deep.equal({
      source: "/etc/rollout/rollout.toml",
      runId: RUN_ID,
      storage: { path: "/etc/rollout/data/rollout.db", onRollback: "halt" },
      transport: {
        listenAddr: "127.0.0.1:50051",
        tlsDir: "/etc/rollout/data/tls",
        certificates: undefined,
        advertisedNames: [],
        advertisedAddr: "127.0.0.1:50051",
      },
      enrolment: { quota: 1_000, lifetimeMs: 2_592_000_000 },
      liveness: {
        heartbeatIntervalMs: 500,
        workerSelfFenceTimeoutMs: 4_000,
        coordinatorFailureTimeoutMs: 5_000,
        clockSkewBudgetMs: 250,
        removeAfterMs: 3_600_000,
      },
      run: {
        maxAttempts: 3,
        maxLost: 5,
        itemTimeoutMs: undefined,
        maxFails: undefined,
        timeLimitMs: undefined,
      },
      coordinator: {
        heartbeatIntervalMs: 1_000,
        failoverThresholdMs: 5_000,
        weight: 1,
        electionQuorum: "off",
        monitorAddr: undefined,
      },
      limits: { payloadBytes: 2 ** 20, outputBytes: 2 ** 20, stateBytes: 2 ** 18, mail: 100_000 },
      keys: {
        totalPartitions: 128,
        virtualNodes: 128,
        maxKeysPerPartition: 2_000,
        checkpointIntervalMs: 10_000,
        checkpointStore: undefined,
        checkpointCredentials: undefined,
        spillAfterMs: 250,
        onFailed: "park",
      },
      worker: {
        stateDir: "/etc/rollout/data/state",
        coordinatorAddr: ["127.0.0.1:50051"],
        enrolment: "/etc/rollout/data/tls/enrolment.pem",
        slots: 1,
        backlogTimeMs: 250,
        plugins: [],
        hotReload: false,
        loadedVersions: 2,
        pluginDir: undefined,
        checkpointIntervalMs: 5_000,
        startTimeoutMs: 120_000,
        orphanTimeoutMs: undefined,
        leaveAfterMs: undefined,
        idleTimeoutMs: undefined,
        onFence: "finish",
        monitorAddr: undefined,
        preemption: "none",
        metadataAddr: "169.254.169.254:80",
      },
      mock: {
        sleepMs: 0,
        distribution: "constant",
        failurePercent: 0,
        journal: undefined,
        stateBytes: undefined,
      },
      fleets: [],
      events: { hide: [], bufferBytes: 8 * 2 ** 20 },
      inspect: { stately: undefined, statelyRemote: false },
      log: { level: "info", format: "auto" },
    });
  });

  it("is frozen at every depth", () => {
    const config = resolveConfig("coordinator", sources(LEAST));
    const mutable = config as unknown as { liveness: { removeAfterMs: number }; events: { hide: string[] } };
    expect(() => (mutable.liveness.removeAfterMs = 1)).to.throw(TypeError);
    expect(() => mutable.events.hide.push("x")).to.throw(TypeError);
  });

  it("gives environment precedence over the file, and flags over both", () => {
    const text = `${LEAST}[worker]\nslots = 2\n`;
    const environment = { ROLLOUT_WORKER_SLOTS: "3" };
    expect(resolveConfig("worker", sources(text)).worker.slots).to.equal(2);
    expect(resolveConfig("worker", sources(text, { environment })).worker.slots).to.equal(3);
    expect(
      resolveConfig("worker", sources(text, { environment, flags: { slots: "4" } })).worker.slots,
    ).to.equal(4);
  });

  it("takes an empty variable for one that is not set", () => {
    const environment = { ROLLOUT_LOG_LEVEL: "", HOME: "/root", ROLLOUT_SMOKE_CLOUD: "1" };
    expect(resolveConfig("coordinator", sources(LEAST, { environment })).log.level).to.equal("info");
  });

  it("takes paths in the file relative to the file, and others relative to where the user is", () => {
    const config = resolveConfig(
      "coordinator",
      sources(LEAST, { flags: { "storage-path": "db", "tls-dir": "/tls" } }),
    );
    expect(config.storage.path).to.equal("/home/somebody/db");
    expect(config.transport.tlsDir).to.equal("/tls");
    expect(config.worker.enrolment).to.equal("/tls/enrolment.pem");
  });

  it("reads lists from the file and, with commas, from flags", () => {
    const text = `${LEAST}[events]\nhide = ["worker_heartbeat"]\n`;
    expect(resolveConfig("coordinator", sources(text)).events.hide).to.deep.equal(["worker_heartbeat"]);
    const flags = { "hide-events": "worker_heartbeat, worker_failed" };
    expect(resolveConfig("coordinator", sources(text, { flags })).events.hide).to.have.length(2);
  });

  it("needs only the run, the address and the bundle for a worker on another machine", () => {
    const text = `run_id = "${RUN_ID}"\n[worker]\ncoordinator_addr = "head:50051"\nenrolment = "bundle.pem"\n`;
    const config = resolveConfig("worker", sources(text));
    expect(config.worker.coordinatorAddr).to.deep.equal(["head:50051"]);
    expect(config.worker.enrolment).to.equal("/etc/rollout/bundle.pem");
    expect(config).to.not.have.property("storage");
  });

  it("reaches a coordinator on every interface over loopback", () => {
    const text = LEAST.replace("127.0.0.1", "0.0.0.0");
    expect(resolveConfig("worker", sources(text)).worker.coordinatorAddr).to.deep.equal(["127.0.0.1:50051"]);
  });

  describe("with several coordinators", () => {
    const list = ["h1:50051", "h2:50051", "[::1]:50052"];

    for (const [how, text, change] of [
      ["a list in the file", `coordinator_addr = ${JSON.stringify(list)}`, {}],
      ["commas in the file", `coordinator_addr = "${list.join(", ")}"`, {}],
      ["a variable", "", { environment: { ROLLOUT_WORKER_COORDINATOR_ADDR: list.join() } }],
      ["a flag", "", { flags: { "coordinator-addr": [list.join()] } }],
      ["a flag that is repeated", "", { flags: { "coordinator-addr": list } }],
    ] as const)
      it(`takes them from ${how}`, () => {
        const config = resolveConfig("worker", sources(`${LEAST}[worker]\n${text}\n`, change));
        expect(config.worker.coordinatorAddr).to.deep.equal(list);
      });

    it("takes them from a named bundle, where no setting says them", () => {
      const bundle = { runId: RUN_ID, coordinatorAddr: list };
      const flags = { enrolment: "bundle.pem" };
      expect(resolveConfig("worker", sources("", { flags, bundle })).worker.coordinatorAddr).to.deep.equal(
        list,
      );
      const text = `[worker]\ncoordinator_addr = "head:1"\n`;
      const said = resolveConfig("worker", sources(text, { flags, bundle }));
      expect(said.worker.coordinatorAddr).to.deep.equal(["head:1"]);
    });

    it("knows which of them a coordinator is by its own setting, or by where it listens", () => {
      const at = (listen: string, advertised: string): string => {
        const text = LEAST.replace('"127.0.0.1:50051"', `"${listen}"${advertised}`);
        const worker = `[worker]\ncoordinator_addr = ${JSON.stringify(list)}\n`;
        return resolveConfig("coordinator", sources(text + worker)).transport.advertisedAddr;
      };
      expect(at("0.0.0.0:50051", '\nadvertised_addr = "h2:50051"')).to.equal("h2:50051");
      expect(at("h1:50051", "")).to.equal("h1:50051");
    });

    it("does not guess which of them a coordinator is", () => {
      const text = `${LEAST}[worker]\ncoordinator_addr = ${JSON.stringify(list)}\n`;
      expect(refusal(text)).to.deep.include({
        code: "config_missing_key",
        text: "/etc/rollout/rollout.toml: transport.advertised_addr is not set",
      });
      expect(resolveConfig("worker", sources(text)).worker.coordinatorAddr).to.deep.equal(list);
    });
  });

  it("tells others the address that it is given, and reaches the coordinator there", () => {
    const text = LEAST.replace('"127.0.0.1:50051"', '"0.0.0.0:50051"\nadvertised_addr = "head:50051"');
    const { transport, worker } = resolveConfig("coordinator", sources(text));
    expect([transport.advertisedAddr, worker.coordinatorAddr]).to.deep.equal(["head:50051", ["head:50051"]]);
  });

  it("does not tell others of a shared database that it is on their own machine", () => {
    const shared = LEAST.replace(/^path = .*$/m, 'url = "postgres://rollout@db:5432/rollout"');
    const wide = shared.replace("127.0.0.1", "0.0.0.0");
    expect(refusal(wide)).to.include({ code: "config_contradiction" });
    expect(refusal(wide).text).to.contain("transport.advertised_addr");
    const told = wide.replace("[transport]", '[transport]\nadvertised_addr = "h1:50051"');
    expect(resolveConfig("coordinator", sources(told)).transport.advertisedAddr).to.equal("h1:50051");
    expect(resolveConfig("coordinator", sources(shared)).transport.advertisedAddr).to.equal(
      "127.0.0.1:50051",
    );
  });

  it("tells others the only address that workers have", () => {
    const text = `${LEAST}[worker]\ncoordinator_addr = "head:50051"\n`;
    expect(resolveConfig("coordinator", sources(text)).transport.advertisedAddr).to.equal("head:50051");
  });

  it("lets a coordinator take any free port, and asks a worker for the real one", () => {
    const text = LEAST.replace("50051", "0");
    expect(resolveConfig("coordinator", sources(text)).transport.listenAddr).to.equal("127.0.0.1:0");
    expect(refusal(text, {}, "worker")).to.deep.include({
      code: "config_missing_key",
      text: "/etc/rollout/rollout.toml: worker.coordinator_addr is not set",
    });
  });

  it("takes the files of a CA of one's own", () => {
    const text = LEAST.replace("tls_dir", `ca_file = "a"\ncert_file = "b"\nkey_file = "c"\ntls_dir`);
    expect(resolveConfig("coordinator", sources(text)).transport.certificates).to.deep.equal({
      caFile: "/etc/rollout/a",
      certFile: "/etc/rollout/b",
      keyFile: "/etc/rollout/c",
    });
  });
});

const SEVENTEEN = Array.from({ length: 17 }, (_, at) => `h${at}:1`);

describe("refusing a configuration", () => {
  for (const [role, missing, text] of [
    ["coordinator", "run_id", ""],
    ["coordinator", "storage.path", `run_id = "${RUN_ID}"`],
    ["coordinator", "transport.listen_addr", `run_id = "${RUN_ID}"\nstorage.path = "x"`],
    ["worker", "worker.coordinator_addr", `run_id = "${RUN_ID}"`],
    ["operator", "worker.coordinator_addr", `run_id = "${RUN_ID}"`],
  ] as const) {
    it(`names ${missing} when a ${role} cannot do without it`, () => {
      const found = refusal(text, {}, role);
      expect(found.code).to.equal("config_missing_key");
      expect(found.text).to.contain(missing);
    });
  }

  it("says where the TOML is broken", () => {
    const found = refusal(`run_id = "${RUN_ID}"\n[storage\n`);
    expect(found.code).to.equal("config_syntax");
    expect(found.text).to.match(/^\/etc\/rollout\/rollout\.toml:2:\d+: not valid TOML: \S.*[^:]$/);
  });

  it("refuses more keys than a coordinator has memory for, with both numbers", () => {
    const most = "total_partitions = 1024\nmax_keys_per_partition = 1024";
    const config = resolveConfig("coordinator", sources(`${LEAST}[keys]\n${most}`));
    expect(config.keys).to.include({ totalPartitions: 1_024, maxKeysPerPartition: 1_024 });
    const { code, text } = refusal(`${LEAST}[keys]\ntotal_partitions = 1025\nmax_keys_per_partition = 1024`);
    expect(code).to.equal("config_contradiction");
    expect(text).to.contain("1025").and.to.contain("1024");
  });

  for (const [line, key, suggestion] of [
    [
      "[liveness]\nheartbeat_intervall = 1",
      "liveness.heartbeat_intervall",
      "did you mean liveness.heartbeat_interval?",
    ],
    [
      "[worker]\nheartbeat_interval = 1",
      "worker.heartbeat_interval",
      "did you mean liveness.heartbeat_interval?",
    ],
    ["[transprot]\nx = 1", "transprot", "did you mean [transport]?"],
    [
      "[banana]\nx = 1",
      "banana",
      "known are run_id, [storage], [transport], [enrolment], [liveness], [coordinator], [run], [limits], [keys], [worker], [mock], [events], [inspect], [log]",
    ],
    ["[log]\nbanana = 1", "log.banana", "known are log.level, log.format"],
  ] as const) {
    it(`refuses the unknown in ${JSON.stringify(line)}`, () => {
      const found = refusal(LEAST + line);
      expect(found.code).to.equal("config_unknown_key");
      expect(found.text).to.contain(`unknown setting ${key}`);
      expect(found.hint).to.equal(suggestion);
    });
  }

  it("names the line of an unknown key", () => {
    expect(refusal(`${LEAST}[worker]\nslotz = 1\n`).text).to.equal(
      "/etc/rollout/rollout.toml:8: unknown setting worker.slotz",
    );
  });

  it("refuses a key that objects have by their prototype", () => {
    expect(refusal(`${LEAST}[log]\n__proto__ = 1\n`).code).to.equal("config_syntax");
    expect(refusal(`toString = 1\n${LEAST}`).code).to.equal("config_unknown_key");
  });

  it("refuses a variable that looks like a setting and is none", () => {
    const found = refusal(LEAST, { environment: { ROLLOUT_LIVENESS_HEARBEAT_INTERVAL: "1s" } });
    expect(found).to.deep.equal({
      code: "config_unknown_key",
      text: "environment: unknown setting ROLLOUT_LIVENESS_HEARBEAT_INTERVAL",
      hint: "did you mean ROLLOUT_LIVENESS_HEARTBEAT_INTERVAL?",
    });
  });

  for (const [setting, value, allowed] of [
    [`[liveness]\nheartbeat_interval`, `"49ms"`, `a duration from "50ms" to "1m", such as "500ms"`],
    [`[liveness]\nheartbeat_interval`, `"61s"`, `a duration from "50ms" to "1m", such as "500ms"`],
    [`[liveness]\nheartbeat_interval`, `500`, `a duration from "50ms" to "1m", such as "500ms"`],
    [`[worker]\nslots`, `0`, "a whole number from 1 to 1024"],
    [`[worker]\nslots`, `1025`, "a whole number from 1 to 1024"],
    [`[worker]\nslots`, `1.5`, "a whole number from 1 to 1024"],
    [`[worker]\nslots`, `true`, "a whole number from 1 to 1024"],
    [`[worker]\nstate_dir`, `""`, "a path"],
    ...[`"a:0"`, `[]`, `["a:1", "a:1"]`, `["a:1", 2]`, `"a:1,"`, `{ a = 1 }`, JSON.stringify(SEVENTEEN)].map(
      (value) =>
        [
          `[worker]\ncoordinator_addr`,
          value,
          "host:port with a port above 0, IPv6 in brackets, or a list of 1 to 16 of them, each once",
        ] as const,
    ),
    ...["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "example.org:1", ":1"].map(
      (value) =>
        [
          `[worker]\nmonitor_addr`,
          JSON.stringify(value),
          "host:port of this machine alone, such as 127.0.0.1:7712 or [::1]:7712, as nobody who asks there shows a certificate",
        ] as const,
    ),
    [`[events]\nhide`, `["nothing"]`, "a list of worker_heartbeat, worker_failed"],
    [`[events]\nhide`, `[1]`, "a list of worker_heartbeat, worker_failed"],
    [`[events]\nbuffer`, `"1KiB"`, `a size from "64KiB" to "1GiB", such as "8MiB"`],
    [`[log]\nlevel`, `"loud"`, "debug, info, warn, error"],
    [`[log]\nformat`, `1979-05-27`, "auto, human, json"],
    [`[log]\nformat`, `{ x = 1 }`, "auto, human, json"],
  ] as const) {
    it(`refuses ${setting.replace(/\W+/g, " ").trim()} = ${value}, and says what is allowed`, () => {
      const found = refusal(`${LEAST}${setting} = ${value}\n`);
      expect(found.code).to.equal("config_invalid_value");
      expect(found.text).to.match(/^\/etc\/rollout\/rollout\.toml:8: \w+\.\w+ = .* is not allowed$/);
      expect(found.hint).to.equal(`allowed: ${allowed}`);
    });
  }

  it("names the variable or the flag of a wrong value", () => {
    expect(refusal(LEAST, { environment: { ROLLOUT_WORKER_SLOTS: "many" } }).text).to.equal(
      'environment variable ROLLOUT_WORKER_SLOTS: worker.slots = "many" is not allowed',
    );
    expect(refusal(LEAST, { flags: { slots: "0" } }).text).to.equal(
      'flag --slots: worker.slots = "0" is not allowed',
    );
  });

  it("refuses a value where a table belongs", () => {
    expect(refusal(`run_id = "${RUN_ID}"\nstorage = "./db"\n`)).to.deep.equal({
      code: "config_invalid_value",
      text: '/etc/rollout/rollout.toml:2: storage = "./db" is not allowed',
      hint: "allowed: a table, written [storage]",
    });
  });

  it("does not repeat a key that was pasted in the wrong place", () => {
    const secret = "-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBg\\n-----END PRIVATE KEY-----\\n";
    const found = refusal(`${LEAST}[log]\nlevel = "${secret}"\n`);
    expect(found.text).to.contain("[redacted]").and.not.contain("MIIE");
  });

  for (const [liveness, key, otherKey] of [
    [`worker_self_fence_timeout = "5s"`, "worker_self_fence_timeout", "coordinator_failure_timeout"],
    [`coordinator_failure_timeout = "4s"`, "worker_self_fence_timeout", "coordinator_failure_timeout"],
    [`clock_skew_budget = "1s"`, "clock_skew_budget", "heartbeat_interval"],
    [
      `coordinator_failure_timeout = "500ms"\nworker_self_fence_timeout = "400ms"\nheartbeat_interval = "400ms"\nclock_skew_budget = "500ms"`,
      "clock_skew_budget",
      "coordinator_failure_timeout",
    ],
    [
      `heartbeat_interval = "2500ms"\nworker_self_fence_timeout = "4999ms"`,
      "heartbeat_interval",
      "worker_self_fence_timeout",
    ],
    [`heartbeat_interval = "3s"`, "heartbeat_interval", "coordinator_failure_timeout"],
    [`remove_after = "4s"`, "remove_after", "coordinator_failure_timeout"],
  ] as const) {
    it(`refuses ${liveness.replaceAll("\n", ", ")}`, () => {
      const found = refusal(`${LEAST}[liveness]\n${liveness}\n`);
      expect(found.code).to.equal("config_contradiction");
      expect(found.text).to.match(
        new RegExp(`:(8|9|10|11): liveness.${key} = \\w+ contradicts liveness.${otherKey} = \\w+`),
      );
      expect(found.hint).to.contain(key).and.contain(otherKey);
    });
  }

  it("refuses a failover threshold of less than three heartbeats, and allows three", () => {
    const found = refusal(`${LEAST}[coordinator]\nheartbeat_interval = "1667ms"\n`);
    expect(found.code).to.equal("config_contradiction");
    expect(found.text).to.contain(
      "coordinator.heartbeat_interval = 1667ms contradicts coordinator.failover_threshold = 5s",
    );
    for (const [heartbeat, threshold] of [
      ["5s", "15s"],
      ["1s", "5s"],
      ["1s", "3s"],
    ]) {
      const text = `${LEAST}[coordinator]\nheartbeat_interval = "${heartbeat}"\nfailover_threshold = "${threshold}"\n`;
      expect(resolveConfig("coordinator", sources(text)).coordinator.weight).to.equal(1);
    }
  });

  it("refuses a majority of two coordinators, and takes one of three", () => {
    const among = (addresses: string): string =>
      `${LEAST}[coordinator]\nelection_quorum = "majority"\n[worker]\ncoordinator_addr = [${addresses}]\n`;
    const two = `"127.0.0.1:50051", "10.0.0.2:1"`;
    expect(refusal(among(two)).code).to.equal("config_contradiction");
    const three = resolveConfig("coordinator", sources(among(`${two}, "10.0.0.3:1"`)));
    expect(three.coordinator.electionQuorum).to.equal("majority");
  });

  for (const [old, hint] of [
    ["lease_renewal", "it is coordinator.heartbeat_interval now"],
    ["lease_deadline", "it is four fifths of coordinator.failover_threshold now, which can be set"],
  ] as const)
    it(`refuses ${old} of 0.1 and says where it went`, () => {
      const inFile = refusal(`${LEAST}[coordinator]\n${old} = "1s"\n`);
      expect([inFile.code, inFile.hint]).to.deep.equal(["config_unknown_key", hint]);
      const name = `ROLLOUT_COORDINATOR_${old.toUpperCase()}`;
      const inEnvironment = refusal(LEAST, { environment: { [name]: "1s" } });
      expect([inEnvironment.code, inEnvironment.hint]).to.deep.equal(["config_unknown_key", hint]);
    });

  it("allows what lies just inside the rules between settings", () => {
    const text = `${LEAST}[liveness]\nworker_self_fence_timeout = "4999ms"\nclock_skew_budget = "999ms"\nremove_after = "5s"\n`;
    expect(resolveConfig("coordinator", sources(text)).liveness.clockSkewBudgetMs).to.equal(999);
  });

  it("refuses a part of a CA of one's own", () => {
    const found = refusal(LEAST.replace("tls_dir", `cert_file = "b"\ntls_dir`));
    expect(found.code).to.equal("config_contradiction");
    expect(found.text).to.contain(
      "transport.cert_file = /etc/rollout/b contradicts transport.ca_file = (not set)",
    );
  });
});

describe("the table of settings", () => {
  it("gives each setting a flag and a variable of its own", () => {
    const flags = SETTING_KEYS.map((key) => settingOf(key).flag);
    expect(new Set(flags).size).to.equal(flags.length);
    expect(new Set(SETTING_KEYS.map(environmentName)).size).to.equal(SETTING_KEYS.length);
  });

  it("allows each default", () => {
    expect(() => resolveConfig("coordinator", sources(LEAST))).to.not.throw();
  });
});
