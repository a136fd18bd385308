// Loads one module changed: `ROLLOUT_MUTANT` names its file and the change. For `node --import`.
import { readFileSync } from "node:fs";
import { registerHooks, stripTypeScriptTypes } from "node:module";
import { pathToFileURL } from "node:url";

interface Planted {
  readonly file: string;
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

const planted = JSON.parse(process.env["ROLLOUT_MUTANT"] ?? "{}") as Planted;
const url = pathToFileURL(planted.file).href;

registerHooks({
  load(asked, context, next) {
    if (asked !== url) return next(asked, context);
    const source = readFileSync(planted.file, "utf8");
    const changed = source.slice(0, planted.start) + planted.text + source.slice(planted.end);
    return { format: "module", source: stripTypeScriptTypes(changed), shortCircuit: true };
  },
});
