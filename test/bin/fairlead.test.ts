import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';

import { COMMAND_NAMES } from '#bin/commands.ts';
import { optionsOf } from '#bin/completion.ts';
import { editDistance } from '#bin/suggest.ts';
import { VERSION } from '#core/version.ts';

const PROGRAM = join(import.meta.dirname, '../../bin/fairlead.ts');

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(...args: string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [PROGRAM, ...args], (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    );
  });
}

for (const name of COMMAND_NAMES.filter((command) => command !== 'version')) {
  test(`"${name} --help" explains itself with examples`, async () => {
    const { code, stdout } = await run(name, '--help');
    assert.equal(code, 0);
    assert.match(stdout, /Usage: fairlead/);
    assert.match(stdout, /Examples:/);
  });
}

test('without a word, and with --help, all commands are named and none of our own', async () => {
  for (const args of [[], ['--help'], ['help']]) {
    const { code, stdout } = await run(...args);
    assert.equal(code, 0);
    for (const name of COMMAND_NAMES) assert.match(stdout, new RegExp(`^  ${name} `, 'm'));
    assert.doesNotMatch(stdout, /dev-guard/);
  }
});

test('"help WORD" is the help of that word', async () => {
  assert.equal((await run('help', 'validate')).stdout, (await run('validate', '--help')).stdout);
});

test("the version is the package's", async () => {
  assert.match((await run('version')).stdout, new RegExp(`^fairlead ${VERSION} `));
  assert.equal((await run('--version')).stdout, (await run('version')).stdout);
});

test('an unknown word is answered with the nearest command and exit code 64', async () => {
  const { code, stderr } = await run('valdiate');
  assert.equal(code, 64);
  assert.match(stderr, /Did you mean "validate"\?/);
  assert.equal((await run('constructor')).code, 64);
});

test('wrong options end with exit code 64 and a hint', async () => {
  for (const args of [
    ['--nonsense'],
    ['validate'],
    ['validate', '.', '--output', 'xml'],
    ['validate', '--nonsense', 'x'],
    ['render', 'x'],
    ['dev', 'x', '--port', 'many'],
    ['sidecar', '--port', 'x'],
    ['operator', '--health-port', 'x'],
    ['completion', 'tcsh'],
  ]) {
    const { code, stderr } = await run(...args);
    assert.equal(code, 64, args.join(' '));
    assert.match(stderr, /--help/);
  }
});

test('completion scripts name every command and its options, and bash can read them', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, stdout } = await run('completion', shell);
    assert.equal(code, 0);
    for (const name of COMMAND_NAMES) assert.ok(stdout.includes(name), `${shell}: ${name}`);
    assert.match(stdout, /kubeconfig/);
    if (shell === 'bash') execFileSync('bash', ['-n'], { input: stdout });
  }
});

test('options in examples are not taken for options of the command', () => {
  assert.deepEqual(optionsOf('  --out DIR\n\nExamples:\n  fairlead sidecar --config-dir x\n'), [
    '--out',
  ]);
});

test('options are read from help texts', () => {
  assert.deepEqual(optionsOf('  --port N  x\n  -h, --help\n  --state-dir DIR (see --port)\n'), [
    '--help',
    '--port',
    '--state-dir',
  ]);
});

test('the distance of words counts single edits', () => {
  assert.equal(editDistance('dev', 'dev'), 0);
  assert.equal(editDistance('deb', 'dev'), 1);
  assert.equal(editDistance('', 'dev'), 3);
  assert.equal(editDistance('rendre', 'render'), 2);
});
