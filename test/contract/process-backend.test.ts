import { fileURLToPath } from "node:url";
import { backendCase } from "../support/backend-cases/process-case.ts";
import { backendContract } from "./backend.ts";

backendContract(
  backendCase,
  fileURLToPath(new URL("../support/backend-cases/process-case.ts", import.meta.url)),
);
