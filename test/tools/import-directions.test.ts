import assert from 'node:assert/strict';
import { test } from 'node:test';

import { aliasedFolders, findDirectionFaults } from '../../tools/import-directions.ts';

const ALIASES = new Set(['core', 'crds', 'operator', 'sidecar', 'test']);

function faultsOf(files: Readonly<Record<string, string>>): string[] {
  const faults = findDirectionFaults(new Map(Object.entries(files)), ALIASES);
  return faults.map(({ path, line, message }) => `${path}:${line} ${message}`);
}

const FORBIDDEN: readonly (readonly [string, string, string])[] = [
  ['core/a.ts', '#crds/b.ts', 'core/ must not import crds/'],
  ['core/a.ts', '#sidecar/b.ts', 'core/ must not import sidecar/'],
  ['crds/a.ts', '#operator/b.ts', 'crds/ must not import operator/'],
  ['sidecar/a.ts', '#crds/b.ts', 'sidecar/ must not import crds/'],
  ['sidecar/a.ts', '#operator/b.ts', 'sidecar/ must not import operator/'],
  ['operator/a.ts', '#sidecar/b.ts', 'operator/ must not import sidecar/'],
  ['core/a.ts', '#test/b.ts', 'core/ must not import test/'],
  ['operator/a.ts', '../tools/b.ts', 'operator/ must not import tools/'],
  ['bin/a.ts', '#sidecar/main.ts', 'bin/ must not import sidecar/'],
  ['examples/q/a.ts', '#core/clock.ts', 'examples/ must not import core/'],
];

for (const [path, specifier, message] of FORBIDDEN) {
  test(`${path} is refused ${specifier}`, () => {
    assert.deepEqual(faultsOf({ [path]: `\nimport { b } from '${specifier}';` }), [
      `${path}:2 ${specifier}: ${message}`,
    ]);
  });
}

test('types, re-exports and dynamic imports are held to the same directions', () => {
  for (const text of [
    `import type { B } from '#operator/b.ts';`,
    `export { b } from '#operator/b.ts';`,
    `export * from '#operator/b.ts';`,
    `await import('#operator/b.ts');`,
  ]) {
    assert.equal(faultsOf({ 'sidecar/a.ts': text }).length, 1, text);
  }
});

test('bin reaches the programs by dynamic import only', () => {
  assert.deepEqual(faultsOf({ 'bin/a.ts': `await import('#sidecar/main.ts');` }), []);
});

test('a relative import stays within its folder', () => {
  const text = `import { b } from '../kube/b.ts'; import { c } from './c.ts'; import { d } from './deep/d.ts';`;
  assert.deepEqual(faultsOf({ 'operator/watch/a.ts': text }), [
    'operator/watch/a.ts:1 ../kube/b.ts: across folders import "#operator/kube/b.ts"',
    'operator/watch/a.ts:1 ./deep/d.ts: across folders import "#operator/watch/deep/d.ts"',
  ]);
});

test('a folder of core that one program alone uses is reported, also when it is reached in steps', () => {
  const files = {
    'core/shared/a.ts': '',
    'core/lonely/b.ts': '',
    'core/step.ts': `import { a } from '#core/shared/a.ts';`,
    'operator/main.ts': `import '#core/step.ts'; import '#core/lonely/b.ts';`,
    'sidecar/main.ts': `import { step } from '#core/step.ts';`,
  };
  assert.deepEqual(faultsOf(files), [
    'core/lonely:1 no file of sidecar reaches core/lonely/; core/ is for what both programs use',
  ]);
});

test('the aliased folders are those of package.json', () => {
  const folders = aliasedFolders({ imports: { '#core/*': './core/*', '#a/*': './a/*' } });
  assert.deepEqual([...folders], ['core', 'a']);
});
