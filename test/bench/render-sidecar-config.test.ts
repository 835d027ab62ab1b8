import assert from 'node:assert/strict';
import { test } from 'node:test';

import { renderSidecarConfig } from './render-sidecar-config.ts';

test('the config of the bench is valid by the contract and lists the dead servers after the live one', () => {
  const config: unknown = JSON.parse(
    renderSidecarConfig({ agentPort: 7317, upstreamPort: 9100, deadPorts: [9101, 9102] }),
  );
  const servers: readonly { readonly alias: string }[] = Object(config)['servers'];
  assert.deepEqual(
    servers.map(({ alias }) => alias),
    ['up', 'dead-0', 'dead-1'],
  );
});
