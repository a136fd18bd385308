// What a value of the configuration may be. Settings and the fields of manifests are rules with more to them.

/** What a value looks like, and what it is when it is not given. */
export type ValueRule =
  | { readonly kind: "duration"; readonly default?: string; readonly min: string; readonly max: string }
  | { readonly kind: "size"; readonly default?: string; readonly min: string; readonly max: string }
  | { readonly kind: "integer"; readonly default?: number; readonly min: number; readonly max: number }
  | { readonly kind: "boolean"; readonly default: boolean }
  | { readonly kind: "failures"; readonly default?: string }
  | { readonly kind: "choice"; readonly default?: string; readonly choices: readonly string[] }
  | { readonly kind: "list"; readonly default?: readonly string[]; readonly of: "host" | "topic" | "path" }
  | { readonly kind: "address"; readonly default?: string; readonly portZero: boolean }
  | { readonly kind: "path"; readonly default?: string }
  | { readonly kind: "ulid"; readonly default?: string };
