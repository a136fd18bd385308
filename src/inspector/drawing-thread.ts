// The program of the thread in which definitions of strangers are read and laid out. It is loaded by src/inspector/drawing.ts and by nobody
// else, which ends it when it takes too long.
import { parentPort } from "node:worker_threads";
import { assert } from "../base/assert.ts";
import { readDefinition } from "../charts/read-definition.ts";
import { UnreadableMachine } from "../charts/read-machine.ts";
import { chartOutline, chartPicture } from "./chart-picture.ts";
import type { DrawingTask, DrawingAnswer } from "./drawing.ts";

assert(parentPort !== null, "drawing is a thread of its own");
const port = parentPort;

async function answerTo({ kind, text }: DrawingTask): Promise<DrawingAnswer> {
  try {
    const { model, isCut } = readDefinition(text);
    if (kind === "read") return { kind: "read", isCut };
    const { id } = model;
    const picture = kind === "outline" ? chartOutline(id, model) : await chartPicture(id, model);
    return { kind: "drawn", picture: JSON.stringify(picture) };
  } catch (error) {
    if (!(error instanceof UnreadableMachine)) throw error;
    return { kind: "unreadable", reason: error.message };
  }
}

port.on("message", (task: DrawingTask) => {
  void answerTo(task).then((answer) => port.postMessage(answer));
});
