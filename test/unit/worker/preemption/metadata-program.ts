// A metadata server as a process of its own: `metadata-program.ts aws|gcp [port]`. Says {"url"} on a line of its standard
// output, does what the lines of its standard input say, says {"obeyed"} for each when it is done, and ends with them:
//   preempt [leadMs] · rebalance · expire · hang · status N · heal
import { createInterface } from "node:readline";
import { AwsMetadataServer, GcpMetadataServer } from "../../../support/metadata-server.ts";

const [cloud, port = "0"] = process.argv.slice(2);
if (cloud !== "aws" && cloud !== "gcp") throw new Error("usage: metadata-program.ts aws|gcp [port]");
const options = { port: Number(port) };
const server =
  cloud === "aws" ? await AwsMetadataServer.start(options) : await GcpMetadataServer.start(options);

function preempt(lead: string | undefined): void {
  if (server instanceof GcpMetadataServer) server.preempt();
  else server.preempt(lead === undefined ? {} : { leadMs: Number(lead) });
}

function obey(line: string): void {
  const [word, value] = line.trim().split(/\s+/);
  if (word === "preempt") preempt(value);
  else if (word === "rebalance" && server instanceof AwsMetadataServer) server.rebalance();
  else if (word === "expire" && server instanceof AwsMetadataServer) server.expireTokens();
  else if (word === "hang") server.misbehave({ kind: "hang" });
  else if (word === "status") server.misbehave({ kind: "status", status: Number(value) });
  else if (word === "heal") server.heal();
  else throw new Error(`a metadata server of ${cloud} does not know "${line}"`);
}

const say = (answer: object): void => void process.stdout.write(`${JSON.stringify(answer)}\n`);

say({ url: server.url });
for await (const line of createInterface({ input: process.stdin })) {
  obey(line);
  say({ obeyed: line });
}
await server.close();
