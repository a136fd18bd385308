// Writes a checkpoint into the directory that is named, and says what became of it. For tests that look at its system calls, or break them.
import { systemReason } from "../../../../src/base/system-reason.ts";
import { DirectoryStore } from "../../../../src/worker/partitions/directory-store.ts";

const [, , directory = "", size = "5"] = process.argv;
const store = new DirectoryStore(directory, "writer");
const said = await store.write("run/place", Buffer.alloc(Number(size))).then(() => "written", systemReason);
console.log(said);
