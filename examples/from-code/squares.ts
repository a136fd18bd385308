// A worker executes this for each item, in a process of its own.
import { defineBackend } from "rollout";

export default defineBackend<{ readonly n: number }, number>(({ n }) => n * n);
