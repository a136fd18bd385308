// `make smoke-ha-quorum`: three coordinators and three workers over a Postgres on three hosts, under Patroni and etcd. One of each kind is
// killed while there is work, and in the end everything of one host. Says what happens as it happens, and ends with `smoke ok: …`, or
// loudly. docs/testing.md
import { findFreePort } from "../src/base/address.ts";
import { Coordinators } from "./smoke/coordinators.ts";
import { QuorumTrial } from "./smoke/quorum-trial.ts";
import { demandPrograms, Quorum } from "./smoke/quorum.ts";
import { demandBuild, limitMsOr, runSmoke } from "./smoke/stage.ts";

const COORDINATORS = 3;
const LIMIT_MIN = 15;

const code = await runSmoke(limitMsOr(LIMIT_MIN), async (stage) => {
  demandBuild();
  demandPrograms();
  const quorum = await Quorum.prepare();
  stage.afterwards(() => quorum.end());
  stage.explainBy(() => quorum.lastWords);
  stage.tell("three etcd and three Postgres under Patroni begin");
  await quorum.begin();
  const places = await Promise.all(
    Array.from({ length: COORDINATORS }, async () => {
      const address = `127.0.0.1:${await findFreePort()}`;
      return { listens: address, reached: address, postgres: quorum.url };
    }),
  );
  const coordinators = await Coordinators.prepare(places);
  stage.afterwards(() => coordinators.end());
  stage.explainBy(() => coordinators.lastWords);
  return new QuorumTrial(quorum, coordinators, stage.tell).perform();
});
// A trial that was given up may still wait for something.
process.exit(code);
