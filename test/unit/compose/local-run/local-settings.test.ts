import { expect } from "chai";
import {
  givenSettings,
  LOCAL_SETTINGS,
  localEnvironment,
  settingWords,
} from "../../../../src/compose/local-run/local-config.ts";

describe("the settings of a local run", () => {
  it("are all settings but those that name addresses and files", () => {
    expect(LOCAL_SETTINGS).to.include.members([
      "run.max_attempts",
      "worker.slots",
      "liveness.heartbeat_interval",
    ]);
    for (const place of [
      "run_id",
      "storage.path",
      "transport.listen_addr",
      "worker.state_dir",
      "worker.plugins",
    ])
      expect(LOCAL_SETTINGS).to.not.include(place);
  });

  it("in the environment reach its processes, and those of another cluster do not", () => {
    const environment = {
      PATH: "/bin",
      ROLLOUT_WORKER_SLOTS: "2",
      ROLLOUT_RUN_ID: "01JZ0000000000000000000000",
      ROLLOUT_WORKER_COORDINATOR_ADDR: "head:1",
      ROLLOUT_TRANSPORT_TLS_DIR: "/tls",
    };
    expect(localEnvironment(environment)).to.deep.equal({ PATH: "/bin", ROLLOUT_WORKER_SLOTS: "2" });
  });

  it("that were given as flags go to the processes that they concern", () => {
    const flags = {
      "max-attempts": "5",
      slots: "3",
      "hot-reload": true,
      "log-level": "debug",
      output: "x",
      plugin: "y",
    };
    expect(settingWords("coordinator", flags)).to.deep.equal(["--max-attempts=5", "--log-level=debug"]);
    expect(settingWords("worker", flags)).to.have.members(["--slots=3", "--hot-reload", "--log-level=debug"]);
  });

  it("that were given can be written down: a flag before a variable, a path from wherever it is read", () => {
    const environment = {
      ROLLOUT_WORKER_SLOTS: "2",
      ROLLOUT_RUN_MAX_ATTEMPTS: "9",
      ROLLOUT_RUN_MAX_LOST: "",
    };
    const flags = {
      "max-attempts": "5",
      "hot-reload": true,
      "mock-journal": "j",
      "run-id": "x",
      output: "y",
    };
    expect(givenSettings(flags, environment, "/here")).to.have.deep.members([
      { key: "run.max_attempts", value: "5" },
      { key: "worker.slots", value: "2" },
      { key: "worker.hot_reload", value: true },
      { key: "mock.journal", value: "/here/j" },
    ]);
  });
});
