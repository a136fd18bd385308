// Says in one line when this Node is too old, before anything that an old Node cannot even parse is loaded. Plain
// JavaScript for that reason, and the same words as the row `node_too_old` of the table of errors (a test compares them).

const NEEDED = [22, 18];

/** True when this Node will do. Otherwise the line is printed and the exit code set. */
export function requireNode() {
  const found = process.versions.node.split(".").map(Number);
  if (found[0] > NEEDED[0] || (found[0] === NEEDED[0] && found[1] >= NEEDED[1])) return true;
  const message =
    "rollout needs Node " + NEEDED.join(".") + " or newer, and this is " + process.versions.node;
  const hint = "install a newer Node and run it again";
  const wantsJson = process.argv.indexOf("--json") !== -1;
  if (wantsJson) {
    console.log(JSON.stringify({ error: { code: "node_too_old", message: message, hint: hint } }));
  }
  console.error("error: " + message + " (" + hint + ")");
  process.exitCode = 2;
  return false;
}
