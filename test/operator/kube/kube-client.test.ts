import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { KubeClient } from '#operator/kube/kube-client.ts';
import type { KubeClientOptions } from '#operator/kube/kube-client-options.ts';
import { isKubeError } from '#operator/kube/kube-error.ts';
import type { KubeErrorKind } from '#operator/kube/kube-error.ts';
import { CONFIG_MAPS, NAMESPACES } from '#operator/kube/kube-object.ts';
import type { KubeObject } from '#operator/kube/kube-object.ts';
import { LeaseLostError } from '#operator/kube/write-gate.ts';
import { FakeApiServer } from '#test/support/fake-api-server.ts';
import { FakeClock } from '#test/support/fake-clock.ts';

function configMap(name: string, data: Record<string, string> = {}): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data };
}

const REF = { resource: CONFIG_MAPS, namespace: 'default', name: 'a' };

function openClient(api: FakeApiServer, options: KubeClientOptions = {}): Promise<KubeClient> {
  return KubeClient.open({ loadConfig: api.configLoader(), random: () => 0, ...options });
}

function ofKind(kind: KubeErrorKind): (error: unknown) => boolean {
  return (error) => isKubeError(error, kind);
}

test('Many calls share few connections', async () => {
  await using api = await FakeApiServer.start();
  await using client = await openClient(api);
  api.put(CONFIG_MAPS, configMap('a'));
  for (let call = 0; call < 20; call += 1) await client.get(REF);
  // The second one opens when a call comes in the very turn in which the one before it ends.
  assert.ok(api.connections <= 2, `${String(api.connections)} connections`);
});

test('Fields that this version does not know survive a read and a write', async () => {
  await using api = await FakeApiServer.start();
  await using client = await openClient(api);
  api.put(CONFIG_MAPS, { ...configMap('a'), futureField: { deep: [1, { x: null }] } });
  const read = await client.get(REF);
  const written = await client.update(CONFIG_MAPS, { ...read, data: { k: 'v' } });
  assert.deepEqual(written['futureField'], { deep: [1, { x: null }] });
});

test('A list reads all pages and gives items their kind back', async () => {
  await using api = await FakeApiServer.start();
  await using client = await openClient(api);
  for (let index = 0; index < 7; index += 1) {
    const { kind: _kind, apiVersion: _apiVersion, ...bare } = configMap(`cm-${String(index)}`);
    api.put(CONFIG_MAPS, bare as KubeObject);
  }
  const { items, resourceVersion } = await client.list(CONFIG_MAPS, { pageSize: 3 });
  assert.equal(items.length, 7);
  assert.ok(items.every((item) => item.kind === 'ConfigMap' && item.apiVersion === 'v1'));
  assert.equal(resourceVersion, String(api.store.version));
  assert.deepEqual(
    api.requests.map((request) => [request.query.get('limit'), request.query.get('continue')]),
    [
      ['3', null],
      ['3', '3'],
      ['3', '6'],
    ],
  );
});

test('A list whose pages expire on the way starts over', async () => {
  await using api = await FakeApiServer.start();
  await using client = await openClient(api);
  for (const name of ['a', 'b', 'c']) api.put(CONFIG_MAPS, configMap(name));
  api.failNext({ path: /x/ }, { kind: 'hang' });
  const first = client.list(CONFIG_MAPS, { pageSize: 2 });
  await api.until(() => api.requests.length === 1);
  api.failNext({ method: 'GET' }, { kind: 'status', status: 410, reason: 'Expired' });
  assert.equal((await first).items.length, 3);
  const tokens = api.requests.map((request) => request.query.get('continue'));
  assert.equal(tokens.filter((token) => token === null).length, 2);
});

test('Only metadata is asked for when only metadata is wanted', async () => {
  await using api = await FakeApiServer.start();
  await using client = await openClient(api);
  await client.list(NAMESPACES, { isMetadataOnly: true, labelSelector: 'a=b' });
  const [request] = api.requests;
  assert.equal(
    request?.headers.accept,
    'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
  );
  assert.equal(request.query.get('labelSelector'), 'a=b');
});

test('Apply sends only our fields, as one manager, by force', async () => {
  await using api = await FakeApiServer.start();
  await using client = await openClient(api);
  await client.apply(CONFIG_MAPS, configMap('a', { k: 'v' }));
  await client.applyStatus(CONFIG_MAPS, { ...configMap('a'), status: { ok: true } });
  const [apply, status] = api.requests;
  assert.equal(apply?.method, 'PATCH');
  assert.equal(apply.headers['content-type'], 'application/apply-patch+yaml');
  assert.equal(apply.query.get('fieldManager'), 'fairlead-operator');
  assert.equal(apply.query.get('force'), 'true');
  assert.match(
    apply.headers['user-agent'] ?? '',
    /^fairlead-operator\/\d+\.\d+\.\d+ \(\w+\/\w+\)$/,
  );
  assert.equal(status?.path, '/api/v1/namespaces/default/configmaps/a/status');
});

test('Each refusal has its own kind', async () => {
  await using api = await FakeApiServer.start();
  await using client = await openClient(api);
  const rows: readonly [status: number, reason: string, kind: KubeErrorKind][] = [
    [404, 'NotFound', 'not-found'],
    [409, 'Conflict', 'conflict'],
    [409, 'AlreadyExists', 'already-exists'],
    [410, 'Expired', 'expired'],
    [410, 'Gone', 'expired'],
    [422, 'Invalid', 'invalid'],
    [400, 'BadRequest', 'invalid'],
    [403, 'Forbidden', 'forbidden'],
    [500, 'InternalError', 'server'],
    [504, 'Timeout', 'timeout'],
  ];
  for (const [status, reason, kind] of rows) {
    api.failNext({}, { kind: 'status', status, reason });
    await assert.rejects(client.get(REF), (error) => {
      assert.ok(isKubeError(error, kind), `${String(status)} ${reason}: ${String(error)}`);
      assert.equal(error.outcome, 'rejected');
      return error.status === status;
    });
  }
  assert.equal(api.requests.length, rows.length, 'none of them was repeated');
});

test('An absent object is undefined to find, and an error to get', async () => {
  await using api = await FakeApiServer.start();
  await using client = await openClient(api);
  assert.equal(await client.find(REF), undefined);
  await assert.rejects(client.get(REF), ofKind('not-found'));
});

test('A delete with a uid spares an object of the same name that came later', async () => {
  await using api = await FakeApiServer.start();
  await using client = await openClient(api);
  const { uid } = api.put(CONFIG_MAPS, configMap('a')).metadata;
  api.remove(CONFIG_MAPS, 'a', 'default');
  api.put(CONFIG_MAPS, configMap('a'));
  await assert.rejects(client.delete(REF, { uid: String(uid) }), ofKind('conflict'));
  assert.equal(api.store.list('/api/v1/configmaps', undefined).length, 1);
});

test('429 and 503 are tried again after the time that the server names, three times at most', async () => {
  await using api = await FakeApiServer.start();
  const clock = new FakeClock();
  await using client = await openClient(api, { clock });
  api.put(CONFIG_MAPS, configMap('a'));
  api.failNext({}, { kind: 'status', status: 429, reason: 'TooManyRequests', retryAfter: '3' });
  api.failNext({}, { kind: 'status', status: 503, reason: 'ServiceUnavailable', retryAfter: '2' });
  const read = client.get(REF);
  await api.until(() => api.requests.length === 1);
  await untilTimer(clock, 2);
  clock.advance(2_999);
  assert.equal(api.requests.length, 1);
  clock.advance(1);
  await api.until(() => api.requests.length === 2);
  await untilTimer(clock, 2);
  clock.advance(2_000);
  assert.equal((await read).metadata.name, 'a');

  api.failNext({}, { kind: 'status', status: 429, reason: 'TooManyRequests', retryAfter: '0' }, 10);
  const before = api.requests.length;
  const failing = assert.rejects(client.get(REF), ofKind('too-many-requests'));
  await untilSettled(failing, () => clock.advance(1));
  assert.equal(api.requests.length - before, 4);
});

test('A server that asks for more patience than the call has is reported as what it is', async () => {
  await using api = await FakeApiServer.start();
  const clock = new FakeClock();
  await using client = await openClient(api, { clock });
  api.failNext({}, { kind: 'status', status: 429, reason: 'TooManyRequests', retryAfter: '3600' });
  const failing = assert.rejects(client.get(REF, { timeoutMs: 5_000 }), (error) => {
    return isKubeError(error, 'too-many-requests') && error.retryAfterMs === 3_600_000;
  });
  await api.until(() => api.requests.length === 1);
  await untilSettled(failing, () => clock.advance(1_000));
});

test('A write whose answer is lost is never repeated, and its outcome is unknown', async () => {
  await using api = await FakeApiServer.start();
  await using client = await openClient(api);
  api.failNext({ method: 'POST' }, { kind: 'act-and-reset' });
  await assert.rejects(client.create(CONFIG_MAPS, configMap('a')), (error) => {
    return isKubeError(error, 'unreachable') && error.outcome === 'unknown';
  });
  assert.equal(api.requests.length, 1);
});

test('A read whose connection was closed under it is tried once more', async () => {
  await using api = await FakeApiServer.start();
  await using client = await openClient(api);
  api.put(CONFIG_MAPS, configMap('a'));
  await client.get(REF);
  api.failNext({}, { kind: 'reset' });
  assert.equal((await client.get(REF)).metadata.name, 'a');
});

test('A refused connection sends nothing and is tried three more times', async () => {
  const api = await FakeApiServer.start();
  const clock = new FakeClock();
  const codes: string[] = [];
  await using client = await openClient(api, {
    clock,
    metrics: { request: ({ code, method }) => void codes.push(`${method} ${code}`) },
  });
  await api[Symbol.asyncDispose]();
  const failing = assert.rejects(client.create(CONFIG_MAPS, configMap('a')), (error) => {
    return isKubeError(error, 'unreachable') && error.outcome === 'not-sent';
  });
  await untilSettled(failing, () => clock.advance(500));
  assert.deepEqual(
    codes,
    Array.from({ length: 4 }, () => 'POST <error>'),
  );
});

test('A call ends in time even when the server never answers', async () => {
  await using api = await FakeApiServer.start();
  const clock = new FakeClock();
  await using client = await openClient(api, { clock });
  api.failNext({}, { kind: 'hang' });
  const failing = assert.rejects(client.create(CONFIG_MAPS, configMap('a')), (error) => {
    return isKubeError(error, 'timeout') && error.outcome === 'unknown';
  });
  await api.until(() => api.requests.length === 1);
  clock.advance(30_000);
  await failing;
  assert.equal(api.requests.length, 1);
});

test("A caller's signal ends its call with the caller's reason", async () => {
  await using api = await FakeApiServer.start();
  await using client = await openClient(api);
  api.failNext({}, { kind: 'hang' });
  const stop = new AbortController();
  const failing = assert.rejects(client.get(REF, { signal: stop.signal }), /enough/);
  await api.until(() => api.requests.length === 1);
  stop.abort(new Error('enough'));
  await failing;
});

test('Redirects are errors and are not followed', async () => {
  await using api = await FakeApiServer.start();
  await using client = await openClient(api);
  const location = `${api.url}/api/v1/namespaces/default/configmaps/other`;
  api.failNext({}, { kind: 'status', status: 307, location });
  await assert.rejects(client.get(REF), ofKind('server'));
  assert.equal(api.requests.length, 1);
});

test('A rotated token is read again after 60 seconds', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-token-'));
  t.after(() => rm(directory, { recursive: true }));
  const tokenFile = join(directory, 'token');
  await writeFile(tokenFile, 'first\n');
  await using api = await FakeApiServer.start();
  const clock = new FakeClock();
  await using client = await KubeClient.open({
    loadConfig: api.configLoader({ tokenFile }),
    clock,
  });
  api.put(CONFIG_MAPS, configMap('a'));
  await client.get(REF);
  await client.get(REF);
  const { connections } = api;
  await writeFile(tokenFile, 'second');
  clock.advance(59_999);
  await client.get(REF);
  clock.advance(1);
  await client.get(REF);
  const sent = api.requests.map((request) => request.headers.authorization);
  assert.deepEqual(sent.slice(1), ['Bearer first', 'Bearer first', 'Bearer second']);
  assert.equal(api.connections, connections, 'a new token needs no new connection');
});

test('A 401 reads the token at once and sends the request a second time, not a third (K4)', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-token-'));
  t.after(() => rm(directory, { recursive: true }));
  const tokenFile = join(directory, 'token');
  await writeFile(tokenFile, 'old');
  await using api = await FakeApiServer.start({ acceptedTokens: new Set(['old']) });
  await using client = await KubeClient.open({ loadConfig: api.configLoader({ tokenFile }) });
  api.put(CONFIG_MAPS, configMap('a'));
  await client.get(REF);
  api.acceptedTokens = new Set(['new']);
  await writeFile(tokenFile, 'new');
  assert.equal((await client.get(REF)).metadata.name, 'a');
  assert.equal(api.requests.length, 3);
  api.acceptedTokens = new Set();
  await assert.rejects(client.get(REF), ofKind('unauthorized'));
  assert.equal(api.requests.length, 5);
});

test('A new CA file makes new connections; the old ones finish what they do', async () => {
  await using api = await FakeApiServer.start();
  await using other = await FakeApiServer.start();
  let ca = api.caPem;
  const base = api.configLoader();
  const loadConfig = async () => {
    const config = await base();
    const cluster = { ...config.clusters[0], caData: Buffer.from(ca).toString('base64') };
    config.clusters = [cluster as (typeof config.clusters)[number]];
    return config;
  };
  const clock = new FakeClock();
  await using client = await KubeClient.open({ loadConfig, clock });
  api.put(CONFIG_MAPS, configMap('a'));
  await client.get(REF);
  const { connections } = api;
  ca = api.caPem + other.caPem;
  clock.advance(60_000);
  await client.get(REF);
  assert.equal(api.connections, connections + 1);
});

test('A write asks its gate at the last moment, again for each attempt; a read never does', async () => {
  await using api = await FakeApiServer.start();
  const clock = new FakeClock();
  await using client = await openClient(api, { clock });
  let mayWrite = true;
  const gated = client.gatedBy({
    assertMayWrite: () => {
      if (!mayWrite) throw new LeaseLostError('no longer the leader');
    },
  });
  api.failNext({ method: 'POST' }, { kind: 'status', status: 503, retryAfter: '1' });
  const write = assert.rejects(gated.create(CONFIG_MAPS, configMap('a')), LeaseLostError);
  await api.until(() => api.requests.length === 1);
  mayWrite = false;
  await untilSettled(write, () => clock.advance(500));
  assert.equal(await gated.find(REF), undefined);
  assert.deepEqual(
    api.requests.map((request) => request.method),
    ['POST', 'GET'],
  );
});

test('Calls over the rate wait, and lease calls go in front of them (K13)', async () => {
  await using api = await FakeApiServer.start();
  const clock = new FakeClock();
  await using client = await openClient(api, { clock, queriesPerSecond: 10, burst: 2 });
  api.put(CONFIG_MAPS, configMap('a'));
  const reads = Array.from({ length: 4 }, () => client.get(REF));
  await api.until(() => api.requests.length === 2);
  await client.inFront().get(REF);
  assert.equal(api.requests.length, 3);
  clock.advance(1_000);
  await Promise.all(reads);
  assert.equal(api.requests.length, 5);
});

test('Errors carry neither token nor body', async () => {
  await using api = await FakeApiServer.start();
  const loadConfig = api.configLoader({ token: 'canary-token' });
  await using client = await KubeClient.open({ loadConfig, clock: new FakeClock() });
  api.failNext({}, { kind: 'reset' }, 2);
  api.failNext({}, { kind: 'status', status: 500 });
  for (let round = 0; round < 2; round += 1) {
    await assert.rejects(
      client.create(CONFIG_MAPS, configMap('a', { k: 'canary-body' })),
      (error) => {
        const text = JSON.stringify(error, Object.getOwnPropertyNames(error)) + String(error);
        return !text.includes('canary');
      },
    );
  }
});

/** Waits until the code under test has as many timers as `count`. */
async function untilTimer(clock: FakeClock, count: number): Promise<void> {
  while (clock.pendingTimers < count) await new Promise((resolve) => setImmediate(resolve));
}

/** Calls `nudge` between turns of the event loop until `work` has ended. */
async function untilSettled(work: Promise<unknown>, nudge: () => void): Promise<void> {
  let isSettled = false;
  const settled = work.finally(() => (isSettled = true));
  settled.catch(() => undefined);
  while (!isSettled) {
    await new Promise((resolve) => setImmediate(resolve));
    nudge();
  }
  await settled;
}
