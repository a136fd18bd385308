// The program of a process that runs a user's machines. It is started by src/worker/backends/machine/machine-backend.ts and
// by nobody else.
import { serveCode } from "../code/serve-code.ts";
import { loadMachine } from "./machine-run.ts";

serveCode(loadMachine);
