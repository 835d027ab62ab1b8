import assert from 'node:assert/strict';
import { test } from 'node:test';

import { isFairleadKind, validateObject } from '#crds/validate-object.ts';
import type {
  McpBinding,
  McpServer,
  ObjectVerdict,
  ValidateOptions,
} from '#crds/validate-object.ts';
import { editValue } from '#test/support/edit-value.ts';
import { GOOD_BINDING, GOOD_OAUTH_SERVER, GOOD_SERVER } from '#test/support/good-objects.ts';

const STRICT: ValidateOptions = { development: false, unknownFields: 'refuse' };
const WATCHED: ValidateOptions = { development: false, unknownFields: 'ignore' };

function server(verdict: ObjectVerdict): McpServer {
  assert.ok(verdict.kind === 'ok', JSON.stringify(verdict));
  assert.ok(verdict.object.kind === 'McpServer');
  return verdict.object;
}

function binding(verdict: ObjectVerdict): McpBinding {
  assert.ok(verdict.kind === 'ok', JSON.stringify(verdict));
  assert.ok(verdict.object.kind === 'McpBinding');
  return verdict.object;
}

function issues(
  input: unknown,
  options: ValidateOptions = STRICT,
): readonly (readonly [string, string])[] {
  const verdict = validateObject(input, options);
  return verdict.kind === 'ok' ? [] : verdict.issues.map(({ path, message }) => [path, message]);
}

test('a server with the required fields only gets every default (R5)', () => {
  const { spec, status } = server(
    validateObject(
      {
        apiVersion: 'fairlead.dev/v1alpha1',
        kind: 'McpServer',
        metadata: { name: 'a' },
        spec: {
          endpoint: 'https://h.example/mcp',
          egress: { allowedHosts: ['h.example'] },
          tools: { allow: ['*'] },
        },
      },
      STRICT,
    ),
  );
  assert.deepEqual(spec, {
    endpoint: 'https://h.example/mcp',
    transport: 'StreamableHTTP',
    suspend: false,
    protocol: { era: 'Auto', versions: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'] },
    egress: {
      allowedHosts: ['h.example'],
      allowedPorts: [443],
      inClusterExceptions: [],
      issuers: [],
    },
    authorization: { type: 'None' },
    tools: { allow: ['*'], trustReadOnlyHint: false, overrides: [] },
    limits: {
      maxConcurrency: 8,
      queueSize: 128,
      queueTimeout: '10s',
      connectTimeout: '5s',
      requestTimeout: '30s',
      streamReadTimeout: '300s',
      maxRequestBytes: 4_194_304,
      maxResponseBytes: 16_777_216,
      maxInputRounds: 10,
      maxRetries: 2,
      terminateOnClose: true,
    },
    cache: { defaultTtl: '1h' },
    priority: 0,
    allowedNamespaces: { from: 'Same' },
  });
  assert.deepEqual(status, { observedGeneration: -1, conditions: [] });
});

test('a server can be suspended without losing its fields (R10)', () => {
  const { spec } = server(validateObject(editValue(GOOD_SERVER, { 'spec.suspend': true }), STRICT));
  assert.equal(spec.suspend, true);
  assert.equal(spec.endpoint, GOOD_SERVER.spec.endpoint);
});

test('a binding gets the defaults of its sidecar, and no limits of its own (R5)', () => {
  const { spec } = binding(validateObject(GOOD_BINDING, STRICT));
  assert.deepEqual(spec.sidecar, { port: 7317, drainTimeout: '30s', logLevel: 'info' });
  assert.equal(spec.servers[0]?.limits, undefined);
});

test('defaults beside values that were given are filled in one by one (R5)', () => {
  const { spec } = server(
    validateObject(
      editValue(GOOD_SERVER, {
        'spec.limits': { maxConcurrency: 1 },
        'spec.protocol': { era: 'Legacy' },
      }),
      STRICT,
    ),
  );
  assert.equal(spec.limits.maxConcurrency, 1);
  assert.equal(spec.limits.requestTimeout, '30s');
  assert.equal(spec.protocol.versions.length, 4);
});

test('a null of a field that cannot be null counts as absent, as on the API server (R7)', () => {
  const { spec } = server(
    validateObject(
      editValue(GOOD_SERVER, {
        'spec.limits': null,
        'spec.egress.caBundleRef': null,
        'spec.suspend': null,
      }),
      STRICT,
    ),
  );
  assert.equal(spec.limits.maxConcurrency, 8);
  assert.equal(spec.egress.caBundleRef, undefined);
  assert.equal(spec.suspend, false);
});

test('the resource is kept byte for byte, with or without a path (R4)', () => {
  for (const resource of [
    'https://mcp.example.com',
    'https://mcp.example.com/',
    'https://mcp.example.com/mcp',
    'https://mcp.example.com/a/b/',
  ]) {
    const { spec } = server(
      validateObject(
        editValue(GOOD_OAUTH_SERVER, { 'spec.authorization.oauth.resource': resource }),
        STRICT,
      ),
    );
    assert.equal(spec.authorization.oauth?.resource, resource);
    assert.equal(spec.endpoint, 'https://mcp.example.com/mcp');
  }
});

test('authorization that does not work yet is valid, and reported as not supported', () => {
  const verdict = validateObject(GOOD_OAUTH_SERVER, STRICT);
  assert.ok(verdict.kind === 'ok');
  assert.deepEqual(
    verdict.unsupported.map(({ path, code }) => [path, code]),
    [['spec.authorization.type', 'NOT_SUPPORTED']],
  );
  const header = validateObject(
    editValue(GOOD_SERVER, {
      'spec.authorization': { type: 'StaticHeader', staticHeader: { name: 'Authorization' } },
    }),
    STRICT,
  );
  assert.ok(header.kind === 'ok' && header.unsupported.length === 1);
  const none = validateObject(GOOD_SERVER, STRICT);
  assert.ok(none.kind === 'ok' && none.unsupported.length === 0);
});

test('unknown fields of watched objects are dropped, at every depth', () => {
  const object = editValue(GOOD_SERVER, {
    'spec.later': 1,
    'spec.limits': { later: 1 },
    'metadata.later': 1,
    later: 1,
  });
  const { spec } = server(validateObject(object, WATCHED));
  assert.equal('later' in spec, false);
  assert.equal('later' in spec.limits, false);
});

test('a key named __proto__ is an unknown field like any other', () => {
  const object: unknown = JSON.parse(
    JSON.stringify(GOOD_SERVER).replace('"spec":{', '"spec":{"__proto__":{"suspend":true},'),
  );
  assert.deepEqual(issues(object), [['spec.__proto__', 'is not a field']]);
  assert.equal(server(validateObject(object, WATCHED)).spec.suspend, false);
});

test('a status that cannot be read counts as not written, and does not spoil the spec', () => {
  const object = editValue(GOOD_SERVER, { status: { observedGeneration: 'x', conditions: 5 } });
  assert.deepEqual(server(validateObject(object, WATCHED)).status, {
    observedGeneration: -1,
    conditions: [],
  });
});

test('a status that the operator wrote is read back', () => {
  const condition = {
    type: 'Ready',
    status: 'True',
    reason: 'Ready',
    message: '',
    lastTransitionTime: '2026-12-01T00:00:00Z',
    observedGeneration: 2,
  };
  const object = editValue(GOOD_BINDING, {
    status: { observedGeneration: 2, conditions: [condition], configRevision: 'a'.repeat(64) },
  });
  const { status } = binding(validateObject(object, WATCHED));
  assert.deepEqual(status, {
    observedGeneration: 2,
    conditions: [condition],
    configRevision: 'a'.repeat(64),
  });
});

test('objects of other groups, kinds and versions are told apart', () => {
  assert.equal(isFairleadKind({ apiVersion: 'v1', kind: 'ConfigMap' }), false);
  assert.equal(isFairleadKind(GOOD_SERVER), true);
  assert.equal(isFairleadKind('fairlead.dev/v1'), false);
  assert.deepEqual(issues({ ...GOOD_SERVER, kind: 'MCPServer' }), [
    ['kind', 'must be one of "McpServer", "McpBinding"'],
  ]);
  assert.deepEqual(issues({ ...GOOD_SERVER, apiVersion: 'fairlead.dev/v1' }), [
    ['apiVersion', 'must be "fairlead.dev/v1alpha1"'],
  ]);
  assert.deepEqual(issues([GOOD_SERVER]), [['', 'must be an object']]);
  assert.deepEqual(issues(undefined), [['', 'must be an object']]);
});

test('messages say what must be, in words', () => {
  const object = editValue(GOOD_SERVER, {
    'spec.tools': undefined,
    'spec.suspend': 'no',
    'spec.priority': '1',
    'spec.limits': { maxConcurrency: 0, connectTimeout: 5, queueTimeout: 'soon' },
    'spec.protocol': { era: 'New' },
    'spec.egress.allowedHosts': [],
  });
  assert.deepEqual(Object.fromEntries(issues(object)), {
    'spec.tools': 'is required',
    'spec.suspend': 'must be true or false',
    'spec.priority': 'must be a whole number',
    'spec.limits.maxConcurrency': 'must be at least 1',
    'spec.limits.connectTimeout': 'must be a string (numbers and true/false need quotes)',
    'spec.limits.queueTimeout': 'must be a duration like "500ms", "30s" or "1h30m"',
    'spec.protocol.era': 'must be one of "Auto", "Modern", "Legacy"',
    'spec.egress.allowedHosts': 'must not be empty',
  });
});

test('no message repeats a value that it refuses', () => {
  const secret = 'hunter2-hunter2';
  const object = editValue(GOOD_SERVER, {
    'spec.endpoint': `https://u:${secret}@mcp.example.com`,
    'spec.tools.allow': [`${secret} `],
    'spec.transport': secret,
  });
  assert.doesNotMatch(JSON.stringify(validateObject(object, STRICT)), new RegExp(secret));
});

test('metadata is checked as Kubernetes does', () => {
  assert.deepEqual(issues(editValue(GOOD_SERVER, { 'metadata.name': undefined })), [
    ['metadata.name', 'is required'],
  ]);
  assert.deepEqual(issues(editValue(GOOD_SERVER, { metadata: undefined })), [
    ['metadata', 'is required'],
  ]);
  assert.equal(
    issues(editValue(GOOD_SERVER, { 'metadata.labels': { 'a b': 'c' } }))[0]?.[0],
    'metadata.labels',
  );
  assert.equal(
    issues(editValue(GOOD_SERVER, { 'metadata.labels': { a: true } }))[0]?.[0],
    'metadata.labels.a',
  );
  assert.equal(
    issues(editValue(GOOD_SERVER, { 'metadata.annotations': { 'example.com/a': 'any text ü' } }))
      .length,
    0,
  );
});
