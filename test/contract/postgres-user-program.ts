// A process that uses a Postgres of its own, until it is killed: it says the server's directory when the server answers.
import { PostgresServer } from "../support/postgres-server.ts";

const { directory, pid } = await PostgresServer.start();
process.stdout.write(`${JSON.stringify({ directory, pid })}\n`);
setInterval(() => undefined, 60_000);
