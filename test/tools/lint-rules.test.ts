// The linter's configuration, proved by sources that break one rule each.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { PROJECT_ROOT } from '../../tools/source-tree.ts';

const BODY_OF_61_LINES = Array.from({ length: 61 }, (_, index) => `  total += ${index};`).join(
  '\n',
);
const FILE_OF_401_LINES = Array.from(
  { length: 401 },
  (_, index) => `export const a${index} = 1;`,
).join('\n');
const THIRTEEN_PATHS = Array.from({ length: 13 }, (_, index) => `a === ${index}`).join(' || ');

const VIOLATIONS: Readonly<Record<string, string>> = {
  'import(no-default-export)': 'const a = 1;\nexport default a;\n',
  'typescript(no-explicit-any)': 'export const a: any = 1;\n',
  'typescript(no-non-null-assertion)':
    'export const f = (a: string | null): number => a!.length;\n',
  'typescript(no-floating-promises)': 'export function f(): void {\n  Promise.resolve();\n}\n',
  'typescript(switch-exhaustiveness-check)':
    "export function f(kind: 'a' | 'b'): void {\n  switch (kind) {\n    case 'a':\n      break;\n  }\n}\n",
  'typescript(return-await)':
    'export async function f(a: Promise<void>): Promise<void> {\n  try {\n    return a;\n  } catch {}\n}\n',
  'eslint(max-lines)': FILE_OF_401_LINES,
  'eslint(max-lines-per-function)': `export function f(): number {\n  let total = 0;\n${BODY_OF_61_LINES}\n  return total;\n}\n`,
  'eslint(complexity)': `export const f = (a: number): boolean => ${THIRTEEN_PATHS};\n`,
  'eslint(max-params)':
    'export const f = (a: number, b: number, c: number, d: number): number => a + b + c + d;\n',
  'eslint(no-console)': "console.log('a');\n",
  'eslint(eqeqeq)': 'export const f = (a: unknown, b: unknown): boolean => a == b;\n',
};

/** Enums are refused by the type checker (`erasableSyntaxOnly`). */
const ENUM = 'export enum Colour {\n  Red,\n}\n';

let root = '';
let report = '';

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'fairlead-lint-'));
  for (const file of ['.oxlintrc.json', 'tsconfig.json', 'package.json']) {
    await copyFile(join(PROJECT_ROOT, file), join(root, file));
  }
  await symlink(join(PROJECT_ROOT, 'node_modules'), join(root, 'node_modules'));
  await mkdir(join(root, 'core'));
  for (const [index, text] of Object.values(VIOLATIONS).entries()) {
    await writeFile(join(root, 'core', `violation-${index}.ts`), text);
  }
  await writeFile(join(root, 'core', 'enum.ts'), ENUM);
  report = await output('oxlint', ['--type-aware', '--format=unix', 'core']);
});

after(() => rm(root, { recursive: true, force: true }));

for (const [index, rule] of Object.keys(VIOLATIONS).entries()) {
  test(`the linter refuses what breaks ${rule}`, () => {
    const own = report.split('\n').filter((line) => line.includes(`core/violation-${index}.ts:`));
    assert.ok(
      own.some((line) => line.includes(rule)),
      own.join('\n') || report,
    );
  });
}

test('the type checker refuses an enum', async () => {
  assert.match(await output('tsc', ['-p', '.']), /core\/enum\.ts.*TS1294/);
});

function output(program: string, args: readonly string[]): Promise<string> {
  const path = join(PROJECT_ROOT, 'node_modules', '.bin', program);
  return new Promise((resolve) => {
    execFile(path, args, { cwd: root }, (_error, stdout, stderr) => resolve(stdout + stderr));
  });
}
