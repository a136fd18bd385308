// A coordinator of a local run that says of each submission that it has taken a line less than it was given, as if that one had got lost on
// the way. The first batch alone has that fault, so a run of few lines has it once.
import { writeFileSync } from "node:fs";
import type { LocalRunPlace } from "../support/local-run.ts";

const MODULE = "forgetful.mjs";
const MESSAGES = new URL("../../src/gen/rollout/v1/run_pb.ts", import.meta.url).href;

/** Read by every Node that the command starts, before anything else; it is for coordinators. */
const TEXT = `
import http2 from "node:http2";
import { syncBuiltinESMExports } from "node:module";
import { fromBinary, toBinary } from "${import.meta.resolve("@bufbuild/protobuf")}";

if (process.argv.includes("coordinator")) {
  const { SubmitResponseSchema } = await import("${MESSAGES}");
  const create = http2.createSecureServer;
  const loseOne = (request, response) => {
    if (!request.url.endsWith("/Submit")) return;
    const write = response.write;
    response.write = (bytes, ...rest) => {
      const answer = fromBinary(SubmitResponseSchema, bytes);
      answer.added -= 1n;
      return write.call(response, toBinary(SubmitResponseSchema, answer), ...rest);
    };
  };
  http2.createSecureServer = (...options) => create(...options).on("request", loseOne);
  syncBuiltinESMExports();
}
`;

/** In front of a command: what its coordinators say that they have taken is a line less. */
export function forgetful(place: LocalRunPlace): string[] {
  writeFileSync(place.file(MODULE), TEXT);
  return ["env", `NODE_OPTIONS=--import ${place.file(MODULE)}`];
}
