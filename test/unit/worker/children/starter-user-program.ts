// Starts processes without pause until it is killed. Says the pid of its starter, then a word for each start.
import { Starter } from "../../../../src/worker/children/starter.ts";

const starter = Starter.begin();
console.log(starter.pid);
for (;;) {
  await starter.start({
    file: "/bin/sh",
    args: ["-c", "read -r word"],
    cwd: "/",
    env: { PATH: "/usr/bin:/bin" },
    streams: ["pipe", "pipe", "pipe"],
  });
  console.log("started");
}
