import { backendCase } from "./backend-cases/process-case.ts";
import { backendContract } from "./backend.ts";

backendContract(backendCase);
