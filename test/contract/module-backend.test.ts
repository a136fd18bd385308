import { backendCase } from "./backend-cases/module-case.ts";
import { backendContract } from "./backend.ts";

backendContract(backendCase);
