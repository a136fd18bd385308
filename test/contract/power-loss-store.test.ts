import { PowerLossStore } from "../../src/storage/memory/power-loss-store.ts";
import { storeContract } from "./store.ts";

storeContract("power loss", { open: async () => new PowerLossStore() });
