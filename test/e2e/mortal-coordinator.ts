// A coordinator of a local run that dies by kill -9 at a call of its own, once for each that was wished for: as it is asked, or when
// all is done and only the answer is still to leave. So that no test has to hit a moment by the clock.
import { existsSync, writeFileSync } from "node:fs";
import type { LocalRunPlace } from "../support/local-run.ts";

/** A method of OperatorService, and whether it is done by then. */
export type DeadlyCall = `${"GetRun" | "Resume" | "Retry" | "Submit" | "Seal"}-${"asked" | "answered"}`;

const MODULE = "mortal.mjs";

/** Read by every Node that the command starts, before anything else; it is for coordinators. */
const TEXT = `
import http2 from "node:http2";
import { existsSync, rmSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";

if (process.argv.includes("coordinator")) {
  const create = http2.createSecureServer;
  http2.createSecureServer = (...options) => create(...options).on("request", dieAt);
  syncBuiltinESMExports();
}

function dieAt(request, response) {
  const method = request.url.split("/").at(-1);
  dieIf(method + "-asked");
  const writeHead = response.writeHead;
  response.writeHead = (...head) => {
    dieIf(method + "-answered");
    return writeHead.apply(response, head);
  };
}

function dieIf(call) {
  if (!existsSync(call)) return;
  rmSync(call);
  process.kill(process.pid, "SIGKILL");
}
`;

/** In front of a command: its coordinators die at these calls, at others that are wished for later too. */
export function mortal(place: LocalRunPlace, ...calls: readonly DeadlyCall[]): string[] {
  writeFileSync(place.file(MODULE), TEXT);
  for (const call of calls) dieAt(place, call);
  return ["env", `NODE_OPTIONS=--import ${place.file(MODULE)}`];
}

export function dieAt(place: LocalRunPlace, call: DeadlyCall): void {
  writeFileSync(place.file(call), "");
}

/** None of them was not made. */
export function haveDied(place: LocalRunPlace, ...calls: readonly DeadlyCall[]): boolean {
  return calls.every((call) => !existsSync(place.file(call)));
}
