// Lint rules. The import directions between folders are the architecture: each block below says what a folder may not import.
import jsdoc from 'eslint-plugin-jsdoc';
import tseslint from 'typescript-eslint';

const ours = (...folders) => folders.map((folder) => ({ regex: `(^|/)${folder}(/|$)`, message: `This folder may not import ${folder}/ (see CONTRIBUTING.md).` }));
const packages = (...names) => names.map((name) => ({ regex: `^${name}(/|$)`, message: `${name} belongs to one place only (see CONTRIBUTING.md).` }));
const layer = (files, patterns, ignores = []) => ({ files, ignores, rules: { 'no-restricted-imports': ['error', { patterns }] } });
const everywhereElse = packages('vscode', 'undici', 'eventsource-parser', 'chart\\.js');
const except = (...allowed) => everywhereElse.filter((p) => !allowed.some((name) => p.regex.includes(name)));
const node = { regex: '^node:', message: 'This folder is pure: no Node API.' };

export default tseslint.config(
  { ignores: ['dist/', 'out/', 'node_modules/', 'test/fixtures/', '**/*.d.ts'] },
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.strictTypeChecked],
    plugins: { jsdoc },
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      curly: ['error', 'multi-line'],
      eqeqeq: 'error',
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unnecessary-condition': 'off',
      '@typescript-eslint/no-confusing-void-expression': 'off',
      '@typescript-eslint/unified-signatures': 'off',
      'jsdoc/require-jsdoc': ['error', { publicOnly: true, require: { FunctionDeclaration: true, ClassDeclaration: true }, contexts: ['TSInterfaceDeclaration', 'TSTypeAliasDeclaration'] }],
    },
  },
  { files: ['test/**/*.ts', 'webview/**/*.ts'], rules: { 'jsdoc/require-jsdoc': 'off' } },
  { files: ['test/**/*.ts'], rules: { '@typescript-eslint/no-floating-promises': 'off' } },
  layer(['src/prompt/**/*.ts'], [...ours('report', 'probe', 'simulator', 'editor', 'webview'), ...everywhereElse, node]),
  layer(['src/report/**/*.ts'], [...ours('prompt', 'probe', 'simulator', 'editor', 'webview'), ...everywhereElse, node]),
  layer(['src/simulator/**/*.ts'], [...ours('prompt', 'report', 'probe', 'editor', 'webview'), ...everywhereElse]),
  layer(['src/probe/**/*.ts'], [...ours('simulator', 'editor', 'webview'), ...everywhereElse], ['src/probe/connection.ts', 'src/probe/decode.ts']),
  layer(['src/probe/connection.ts'], [...ours('simulator', 'editor', 'webview'), ...except('undici')]),
  layer(['src/probe/decode.ts'], [...ours('simulator', 'editor', 'webview'), ...except('eventsource-parser')]),
  layer(['src/editor/**/*.ts'], [...ours('webview'), ...except('vscode')]),
  layer(['src/extension.ts'], [...ours('probe', 'prompt', 'report', 'simulator', 'webview'), ...except('vscode')]),
  layer(['src/cli.ts'], [...ours('editor', 'webview'), ...everywhereElse]),
  layer(['webview/**/*.ts'], [...ours('prompt', 'probe', 'simulator', 'editor'), ...except('chart'), node]),
);
