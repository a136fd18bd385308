// The program of a process that executes a user's function. It is started by src/worker/backends/code/code-backend.ts
// and by nobody else.
import { serveCode } from "../code/serve-code.ts";
import { loadItemFunction } from "./item-function.ts";

serveCode(loadItemFunction, "saveTrainState");
