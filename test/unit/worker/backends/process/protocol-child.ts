// A child of the `process` backend that does what its argument says: JavaScript, as a module that has `say(object)`, `raw(text)`,
// `complain(text)`, `exit(code)` and `onLine(callback)` for what the worker says.
const PRELUDE = `
import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
const raw = (text) => writeFileSync(1, text);
const say = (message) => raw(JSON.stringify(message) + "\\n");
const complain = (text) => writeFileSync(2, text);
const exit = (code) => process.exit(code);
const onLine = (callback) =>
  void createInterface({ input: process.stdin }).on("line", (line) => callback(JSON.parse(line)));
`;

/** The command of such a child. */
export function protocolChild(source: string): readonly string[] {
  return [process.execPath, "--input-type=module", "--eval", `${PRELUDE}\n${source}`];
}
