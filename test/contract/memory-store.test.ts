import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import { storeContract } from "./store.ts";

storeContract("memory", { open: async () => new MemoryStore() });
