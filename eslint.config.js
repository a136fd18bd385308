// The lint of the house, but for the rules that have to know types: those are in .oxlintrc.json, for a program that reads them out of
// the native compiler in an eighth of the time. There are no exceptions in the files themselves (`noInlineConfig`, and the words by
// which the other program is told of some are refused): what is excepted stands here and there.
import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";
import { houseRules } from "./scripts/lint/house-rules.ts";
import { restrictions } from "./scripts/lint/restrictions.ts";

const TYPESCRIPT = ["**/*.ts"];
const PRODUCT = ["src/**/*.ts", "machines/**/*.ts"];
const TESTS = ["test/**/*.ts"];
/** Where a person or another program starts a process, so where its arguments and environment are read. */
const PROCESS_STATE = [
  "src/commands/**",
  "src/cli/**",
  // The library's ends: there is no command between them and the program that uses it.
  "src/compose/rollout-client.ts",
  "src/compose/local-cluster.ts",
  // The beginning of a process of a user's code.
  "src/worker/backends/code/serve-code.ts",
  // The program of the starter, which starts a worker's processes.
  "src/worker/children/starter-program.ts",
  "bin/**",
  "scripts/**",
  "test/**",
  "bench/**",
  "examples/**",
];
/** A program of its own, for browsers: it has their clock and nothing of ours. */
const PAGE = "src/inspector/page";
const CLOCK = "src/base/clock.ts";
const RANDOM = "src/base/random.ts";
/** Files that live by the real clock: supports of tests, and programs that tests start. */
const TEST_SUPPORT = ["test/support/**", "test/**/*-program.ts"];

/** Rules of ESLint itself that find mistakes which the compiler does not. */
const PITFALLS = [
  "eqeqeq",
  "no-async-promise-executor",
  "no-constant-binary-expression",
  "no-constant-condition",
  "no-empty",
  "no-eval",
  "no-implied-eval",
  "no-loss-of-precision",
  "no-misleading-character-class",
  "no-new-func",
  "no-self-assign",
  "no-self-compare",
  "no-unmodified-loop-condition",
  "no-unreachable-loop",
  "no-unsafe-finally",
  "no-unsafe-optional-chaining",
  "no-useless-catch",
  "no-var",
  "prefer-const",
  "use-isnan",
];

export default defineConfig(
  {
    ignores: ["dist/", "src/gen/", ".cache/", "node_modules/"],
  },
  { linterOptions: { noInlineConfig: true, reportUnusedDisableDirectives: "error" } },
  {
    plugins: { house: houseRules },
    rules: {
      ...restrictions(),
      "house/file-name": "error",
      "house/plain-opening": "error",
      ...Object.fromEntries(PITFALLS.map((rule) => [rule, "error"])),
      // The other program would listen to it, as this one does not.
      "no-warning-comments": ["error", { terms: ["oxlint-", "eslint-"], location: "anywhere" }],
      "max-depth": ["error", 4],
      "max-lines": ["error", { max: 400, skipBlankLines: false, skipComments: false }],
      "max-lines-per-function": ["error", { max: 70, skipBlankLines: true, skipComments: true }],
      // Export by name.
      "no-restricted-exports": ["error", { restrictDefaultExports: { direct: true, named: true } }],
    },
  },
  {
    files: TYPESCRIPT,
    extends: [tseslint.configs.strict],
    rules: {
      "@typescript-eslint/consistent-type-imports": ["error", { fixStyle: "separate-type-imports" }],
      "@typescript-eslint/no-unused-vars": ["error", { args: "all", argsIgnorePattern: "^_" }],
    },
  },
  { files: PROCESS_STATE, rules: restrictions({ process: false }) },
  // The bench measures the loop itself; no decision is taken on it.
  { files: ["bench/**"], rules: restrictions({ process: false, loopDelay: false }) },
  { files: [`${PAGE}/browser.ts`], rules: restrictions({ clock: false, chance: false }) },
  { files: [CLOCK], rules: restrictions({ clock: false }) },
  { files: [RANDOM], rules: restrictions({ chance: false }) },
  // They stand for programs of somebody else's.
  {
    files: ["examples/unary-worker.ts", "examples/inspect-a-program/**"],
    rules: restrictions({ clock: false, chance: false, process: false }),
  },
  { files: TEST_SUPPORT, rules: restrictions({ clock: false, process: false }) },
  {
    files: TESTS,
    rules: {
      "max-lines": ["error", 600],
      "max-lines-per-function": "off",
      // chai: `expect(value).to.be.true` is a statement that asserts.
      "@typescript-eslint/no-unused-expressions": "off",
    },
  },
  // Words of a program of ours go through the log, the event stream or the command: nothing by the way.
  { files: PRODUCT, rules: { "no-console": "error" } },
  // oclif finds commands, a worker a plugin's code, mocha its reporters and tools their configuration by the default export.
  {
    files: [
      "src/commands/**",
      "test/support/mocha-*.ts",
      "*.config.js",
      ".dependency-cruiser.mjs",
      // A plugin's module, unless its manifest says otherwise.
      "examples/*/*.ts",
    ],
    rules: { "no-restricted-exports": "off" },
  },
  {
    files: ["**/*.{js,mjs}"],
    languageOptions: { globals: { process: "readonly", console: "readonly", URL: "readonly" } },
    rules: { "no-undef": "error", "no-unused-vars": "error" },
  },
);
