// Kinds of values in the configuration. Settings and the fields of manifests are rules with more to them.

/** The form of a value, and its default. */
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
