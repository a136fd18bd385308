// The program of a process that sends events to a user's actors. It is started by src/worker/backends/code/code-backend.ts
// and by nobody else.
import { serveCode } from "../code/serve-code.ts";
import { loadActors } from "./execute-actors.ts";

serveCode(loadActors);
