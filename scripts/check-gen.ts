// The generated code is what buf makes of proto/ today: generated again elsewhere and compared, file by file.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { globSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const GEN = "src/gen";

/** Path and text of every file under `root`, folders apart. */
function contents(root: string): Map<string, string> {
  const entries = globSync("**", { cwd: root, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    entries.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [path.slice(root.length + 1), readFileSync(path, "utf8")];
    }),
  );
}

const directory = mkdtempSync(join(tmpdir(), "rollout-gen-"));
try {
  execFileSync("buf", ["generate", "--output", directory], { stdio: "inherit" });
  const made = contents(join(directory, GEN));
  const kept = contents(GEN);
  const different = [...new Set([...made.keys(), ...kept.keys()])].filter(
    (path) => made.get(path) !== kept.get(path),
  );
  for (const path of different) console.log(`${GEN}/${path} is not what buf generates: run \`make gen\``);
  console.log(`${made.size} files generated, ${different.length} differ`);
  process.exitCode = different.length === 0 && made.size > 0 ? 0 : 1;
} finally {
  rmSync(directory, { recursive: true, force: true });
}
