// The items of the backends' contract, executed by a server: one request each. `node item-server-program.ts PORT`.
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { behave } from "../../support/item-behaviour.ts";
import type { ItemBehaviour } from "../../support/item-behaviour.ts";

const [port = "0"] = process.argv.slice(2);

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  // It asks whether the server is ready.
  if (text === "") return void response.end();
  const behaved = await behave(JSON.parse(text) as ItemBehaviour, {
    checkpoint: "",
    save: () => undefined,
    complain: (words) => void process.stderr.write(`${words}\n`),
    ignoreEnd: () => void process.on("SIGTERM", () => undefined),
  });
  switch (behaved.kind) {
    case "value":
      return void response.end(JSON.stringify(behaved.value));
    case "bytes":
      return void response.end(behaved.bytes);
    case "failed":
      return void response.writeHead(422).end(behaved.words);
  }
}

createServer((request, response) => void answer(request, response)).listen(Number(port), "127.0.0.1");
