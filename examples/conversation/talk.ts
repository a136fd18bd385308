// `node examples/conversation/talk.ts "Good morning" "How are you?"`: a program that holds a conversation, with a cluster of its own and a model that
// is a toy. Each word of yours is an event, and each answer comes by itself when it is committed.
import { fileURLToPath } from "node:url";
import { startCluster } from "rollout";
import { OpenAiServer } from "../openai-server/server.ts";
import type { conversation } from "./conversation.ts";

const module = fileURLToPath(new URL("conversation.ts", import.meta.url));
const server = await OpenAiServer.start({ latencyMs: 50 });
process.env["MODEL_URL"] = server.url;
process.env["SILENCE_MS"] ??= "1000";
const cluster = await startCluster({ actors: { module, types: ["conversation"] }, workers: 1 });
try {
  const talk = cluster.client.actors<typeof conversation>("conversation").ref("one");
  let heard = 0;
  for (const text of process.argv.slice(2)) {
    await talk.send({ type: "say", text });
    const { context } = await talk.waitFor(
      (now) => now.value === "listening" && now.context.messages.length > heard + 1,
    );
    heard = context.messages.length;
    console.log(`> ${text}`);
    console.log(context.messages.at(-1)?.content);
  }
  const { context } = await talk.waitFor(({ value }) => value === "reminded");
  console.log(context.messages.at(-1)?.content);
  await talk.send({ type: "bye" });
  const { output } = await talk.waitFor(({ status }) => status === "done");
  console.log(`${output?.turns} turns`);
} finally {
  await cluster.stop();
  await server.close();
}
