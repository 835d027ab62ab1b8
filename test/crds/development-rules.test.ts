// What `fairlead dev` accepts beyond the API server: plain http to a loopback host, with a port.

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { validateObject } from '#crds/validate-object.ts';
import type { ValidateOptions } from '#crds/validate-object.ts';
import { editValue } from '#test/support/edit-value.ts';
import type { Edits } from '#test/support/edit-value.ts';
import { GOOD_SERVER } from '#test/support/good-objects.ts';

const STRICT: ValidateOptions = { development: false, unknownFields: 'refuse' };
const DEVELOPMENT: ValidateOptions = { development: true, unknownFields: 'refuse' };

function issues(
  input: unknown,
  options: ValidateOptions = STRICT,
): readonly (readonly [string, string])[] {
  const verdict = validateObject(input, options);
  return verdict.kind === 'ok' ? [] : verdict.issues.map(({ path, message }) => [path, message]);
}

suite('plain http', () => {
  const loopback = (endpoint: string, host: string, port: number): Edits => ({
    'spec.endpoint': endpoint,
    'spec.egress.allowedHosts': [host],
    'spec.egress.allowedPorts': [port],
    'spec.egress.inClusterExceptions': undefined,
  });
  const rows: readonly (readonly [string, string])[] = [
    ['http://localhost:3000/mcp', 'localhost'],
    ['http://127.0.0.1:3000/mcp', '127.0.0.1'],
    ['http://127.8.9.10:3000', '127.8.9.10'],
    ['http://[::1]:3000/mcp', '[::1]'],
  ];
  for (const [endpoint, host] of rows) {
    test(`to ${host} with a port is for development only (R3)`, () => {
      const object = editValue(GOOD_SERVER, loopback(endpoint, host, 3000));
      assert.deepEqual(issues(object, DEVELOPMENT), []);
      assert.ok(issues(object).some(([path]) => path === 'spec.endpoint'));
    });
  }
  const refused: readonly (readonly [string, string, number])[] = [
    ['http://localhost/mcp', 'localhost', 80],
    ['http://mcp.example.com:80/mcp', 'mcp.example.com', 80],
    ['http://10.0.0.1:3000/mcp', '10.0.0.1', 3000],
    ['http://localhost.example.com:3000/mcp', 'localhost.example.com', 3000],
    ['http://0.0.0.0:3000/mcp', '0.0.0.0', 3000],
    ['http://127.1:3000/mcp', '127.1', 3000],
  ];
  for (const [endpoint, host, port] of refused) {
    test(`as ${endpoint} is refused even in development (R3)`, () => {
      assert.ok(
        issues(editValue(GOOD_SERVER, loopback(endpoint, host, port)), DEVELOPMENT).some(
          ([path]) => path === 'spec.endpoint',
        ),
      );
    });
  }
});

test('in development an unlisted loopback host or port is refused all the same (R2)', () => {
  const object = editValue(GOOD_SERVER, {
    'spec.endpoint': 'http://localhost:3000/mcp',
    'spec.egress.allowedHosts': ['127.0.0.1'],
  });
  assert.deepEqual(issues(object, DEVELOPMENT)[0], [
    'spec.endpoint',
    'must have a host that egress.allowedHosts lists',
  ]);
});
