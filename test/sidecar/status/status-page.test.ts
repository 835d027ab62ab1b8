import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import type { ServerStatus } from '#sidecar/relay/relay.ts';
import { renderStatusPage } from '#sidecar/status/status-page.ts';
import type { StatusInput } from '#sidecar/status/status-page.ts';

const SERVER: ServerStatus = {
  alias: 'desk',
  namespace: 'tools',
  name: 'desk',
  state: 'unavailable',
  reason: 'SERVER_UNAVAILABLE',
  tools: [],
  rejectedTools: [],
  connections: { inFlight: 0, queued: 0, sockets: 0 },
};

function input(edit: Partial<StatusInput> = {}): StatusInput {
  return {
    binding: { namespace: 'agents', name: 'desk' },
    config: {
      runningRevision: 'a',
      origin: 'directory',
      wantedRevision: 'a',
      rejection: undefined,
    },
    drain: 'serving',
    uptimeMs: 61_900,
    sessions: 2,
    requestsInFlight: 3,
    openStreams: 1,
    proxy: undefined,
    servers: [SERVER],
    needsRestart: [],
    ...edit,
  };
}

describe('the status page', () => {
  it('tells configuration, servers and load, and nothing about people', () => {
    const { version, ...page } = renderStatusPage(input());
    assert.match(version, /^\d+\.\d+\.\d+/);
    assert.deepEqual(page, {
      uptimeSeconds: 61,
      state: 'serving',
      binding: { namespace: 'agents', name: 'desk' },
      config: {
        runningRevision: 'a',
        origin: 'directory',
        wantedRevision: 'a',
        rejected: null,
        needsRestart: [],
      },
      agents: { sessions: 2, requestsInFlight: 3, openStreams: 1 },
      proxy: null,
      servers: [SERVER],
    });
  });

  it('sets what is wanted against what runs, with the reasons', () => {
    const rejection = {
      code: 'CONFIG_INVALID',
      issues: [{ path: 'servers[0].alias', message: 'is used twice' }],
    } as const;
    const { config } = renderStatusPage(
      input({
        config: { runningRevision: 'a', origin: 'last-good', wantedRevision: 'b', rejection },
      }),
    );
    assert.deepEqual(config, {
      runningRevision: 'a',
      origin: 'last-good',
      wantedRevision: 'b',
      rejected: rejection,
      needsRestart: [],
    });
  });

  it('says null where there is nothing yet', () => {
    const nothing = {
      runningRevision: undefined,
      origin: undefined,
      wantedRevision: undefined,
      rejection: undefined,
    };
    const page = renderStatusPage(input({ binding: undefined, config: nothing }));
    assert.deepEqual(
      [page.binding, page.config.runningRevision, page.config.origin, page.config.wantedRevision],
      [null, null, null, null],
    );
    assert.equal(JSON.parse(JSON.stringify(page)).config.runningRevision, null);
  });
});
