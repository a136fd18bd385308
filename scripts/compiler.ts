// The compiler of the checks, the build and the tests: TypeScript's own in machine code, which takes a quarter of the processor's
// time. The package `typescript` beside it is the library that the lint asks; both bring a `tsc`, so this one is named by its path.
export const COMPILER = "node_modules/typescript7/bin/tsc";
