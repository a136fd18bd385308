// The program of a process that runs a user's machines. It is started by src/worker/backends/code/code-backend.ts and
// by nobody else.
import { serveCode } from "../code/serve-code.ts";
import { loadMachine } from "./machine-run.ts";

serveCode(loadMachine);
