import { fileURLToPath } from "node:url";
import { backendCase } from "../support/backend-cases/module-case.ts";
import { backendContract } from "./backend.ts";

backendContract(
  backendCase,
  fileURLToPath(new URL("../support/backend-cases/module-case.ts", import.meta.url)),
);
