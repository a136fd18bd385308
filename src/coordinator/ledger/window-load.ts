// What a window is to be given from the store, asked and answered.
import type { DelayedItem, PendingItem } from "./ledger.ts";
import type { LoadRequest } from "./window.ts";

export type WindowName = "returned" | "alone" | "delayed" | { readonly priority: number };

export interface WindowLoad extends LoadRequest {
  readonly window: WindowName;
}

export type LoadedWindow =
  | { readonly window: "delayed"; readonly entries: readonly DelayedItem[]; readonly hasMore: string | null }
  | {
      readonly window: "returned" | "alone" | { readonly priority: number };
      readonly entries: readonly PendingItem[];
      readonly hasMore: string | null;
    };
