// What users copy must be valid, and say so by the program itself.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const EXAMPLES: readonly (readonly [string, readonly string[]])[] = [
  ['the cluster example', ['examples/cluster']],
  ['the quickstart, in development mode', ['--development', 'examples/quickstart']],
];

for (const [what, words] of EXAMPLES) {
  test(`${what} is valid`, async () => {
    const { code, output } = await validate(words);
    assert.equal(code, 0, output);
  });
}

test('the quickstart is refused outside of development mode: plain http is for desks', async () => {
  const { code, output } = await validate(['examples/quickstart']);
  assert.equal(code, 1);
  assert.match(output, /mcp-servers\.yaml:\d+:\d+: .*spec\.endpoint: must use https/);
});

interface Verdict {
  readonly code: number | null;
  readonly output: string;
}

function validate(words: readonly string[]): Promise<Verdict> {
  const args = ['bin/fairlead.ts', 'validate', ...words];
  return new Promise((resolve) => {
    const child = execFile(process.execPath, args, { cwd: ROOT }, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode, output: stdout + stderr });
    });
  });
}
