// A worker's execution side as a process that can be killed: executes one item that never ends. Arguments: the name of the
// backend, the directory, the payload. Says the guardian's pid when the item executes.
import type { BackendCase } from "../support/backend-case.ts";
import { BackendRig, pidsIn } from "../support/backend-rig.ts";
import type { ItemBehaviour } from "../support/item-behaviour.ts";

const [name = "", directory = "", payload = ""] = process.argv.slice(2);
const { backendCase } = (await import(`./backend-cases/${name}-case.ts`)) as { backendCase: BackendCase };
const rig = await BackendRig.open(backendCase, directory);
const item = JSON.parse(payload) as ItemBehaviour & { readonly do: "hang" };
rig.give(item);
await pidsIn(item.pids);
process.stdout.write(`${rig.children.guardianPid ?? 0}\n`);
// Until it is killed.
setInterval(() => undefined, 60_000);
