import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { checkSidecarConfig, MAX_CONFIG_BYTES } from '#core/config/sidecar-config.ts';
import { type McpBinding, type McpServer, validateObject } from '#crds/validate-object.ts';
import { type RenderInput, renderSidecarConfig } from '#operator/render/sidecar-config.ts';
import { GOOD_BINDING, GOOD_SERVER } from '#test/support/good-objects.ts';

const GOLDEN = new URL('sidecar-config.golden.txt', import.meta.url);

type Spec = Readonly<Record<string, unknown>>;

function parse(input: unknown): McpServer | McpBinding {
  const verdict = validateObject(input, { development: false, unknownFields: 'refuse' });
  assert.ok(verdict.kind === 'ok', JSON.stringify(verdict));
  return verdict.object;
}

function serverSpec(spec: Spec = {}): McpServer['spec'] {
  const object = parse({ ...GOOD_SERVER, spec: { ...GOOD_SERVER.spec, ...spec } });
  assert.ok(object.kind === 'McpServer');
  return object.spec;
}

function bindingSpec(spec: Spec = {}): McpBinding['spec'] {
  const object = parse({ ...GOOD_BINDING, spec: { ...GOOD_BINDING.spec, ...spec } });
  assert.ok(object.kind === 'McpBinding');
  return object.spec;
}

interface OneServer {
  readonly entry?: Spec;
  readonly spec?: Spec;
}

/** A binding with these servers, all of them resolved. */
function input(servers: readonly OneServer[], caBundle?: string): RenderInput {
  const entries = servers.map(({ entry }, index) => ({
    name: `server-${String(index)}`,
    ...entry,
  }));
  const spec = bindingSpec({ servers: entries });
  return {
    binding: { namespace: 'team', name: 'agent', spec },
    tenant: 'acme',
    servers: spec.servers.map((entry, index) => ({
      entry,
      namespace: 'tools',
      spec: serverSpec(servers[index]?.spec),
      caBundle,
    })),
  };
}

function render(from: RenderInput): { readonly revision: string; readonly text: string } {
  const rendered = renderSidecarConfig(from);
  assert.ok(rendered.kind === 'ok');
  return rendered;
}

interface Rendered {
  readonly servers: readonly {
    readonly alias: string;
    readonly limits: Readonly<Record<string, unknown>>;
    readonly tools: { readonly allow: unknown };
    readonly resource: string;
    readonly egress: { readonly caBundle?: string };
  }[];
}

function rendered(from: RenderInput): Rendered {
  return JSON.parse(render(from).text) as Rendered;
}

const FULL = input(
  [
    {
      entry: {
        alias: 'low',
        tools: { allow: ['get_issue'] },
        limits: { maxConcurrency: 2, requestTimeout: '5s', maxRetries: 0 },
      },
      spec: { priority: -1, cache: { defaultTtl: '10m' } },
    },
    {
      entry: { alias: 'high' },
      spec: { priority: 10, protocol: { era: 'Modern', versions: ['2026-07-28'] } },
    },
    {
      entry: { alias: 'also-high' },
      spec: { priority: 10, tools: { allow: ['*'], trustReadOnlyHint: true } },
    },
  ],
  '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
);

test('the rendered bytes are these, and no others, until the contract changes on purpose', async () => {
  assert.equal(render(FULL).text, await readFile(GOLDEN, 'utf8'));
});

test('the sidecar accepts what is rendered', () => {
  const verdict = checkSidecarConfig(JSON.parse(render(FULL).text), { development: false });
  assert.equal(verdict.kind, 'ok');
});

test('equal input gives equal bytes, whatever the order in which servers were found', () => {
  const reversed = { ...FULL, servers: FULL.servers.toReversed() };
  assert.deepEqual(render(reversed), render(structuredClone(FULL)));
});

test('the highest priority comes first, and equal ones by alias (R74)', () => {
  assert.deepEqual(
    rendered(FULL).servers.map(({ alias }) => alias),
    ['also-high', 'high', 'low'],
  );
});

test('a suspended server is in no config, and neither is anything of it (R10)', () => {
  const config = rendered(input([{}, { spec: { suspend: true } }]));
  assert.deepEqual(
    config.servers.map(({ alias }) => alias),
    ['server-0'],
  );
});

test('a tool must be allowed by the server and by the binding: both lists are there', () => {
  const [low, , all] = rendered(FULL).servers.toReversed();
  assert.deepEqual(low?.tools.allow, [['get_*', 'create_issue'], ['get_issue']]);
  assert.deepEqual(all?.tools.allow, [['*']]);
});

test('a binding only lowers limits, never raises them', () => {
  const raised = { maxConcurrency: 100, requestTimeout: '1m', queueSize: 5_000, maxRetries: 9 };
  const limits = rendered(input([{ entry: { limits: raised } }])).servers[0]?.limits;
  assert.deepEqual(limits, rendered(input([{}])).servers[0]?.limits);
});

test('a binding that lowers only the silence of streams lowers the deadline of calls with it (R6)', () => {
  const limits = rendered(input([{ entry: { limits: { streamReadTimeout: '10s' } } }])).servers[0]
    ?.limits;
  assert.equal(limits?.['streamReadTimeoutMs'], 10_000);
  assert.equal(limits?.['requestTimeoutMs'], 10_000);
});

test('the defaults are those that the product promises (R5)', () => {
  const { limits } = rendered(input([{}])).servers[0] ?? {};
  assert.deepEqual(
    {
      connect: limits?.['connectTimeoutMs'],
      queue: limits?.['queueTimeoutMs'],
      request: limits?.['requestTimeoutMs'],
      stream: limits?.['streamReadTimeoutMs'],
      concurrency: limits?.['maxConcurrency'],
      terminates: limits?.['terminateOnClose'],
      retries: limits?.['maxRetries'],
      rounds: limits?.['maxInputRounds'],
    },
    {
      connect: 5_000,
      queue: 10_000,
      request: 30_000,
      stream: 300_000,
      concurrency: 8,
      terminates: true,
      retries: 2,
      rounds: 10,
    },
  );
});

test('the resource is the endpoint as it is written, not a part of it (R4)', () => {
  const endpoint = 'https://mcp.example.com/v1/mcp';
  assert.equal(rendered(input([{ spec: { endpoint } }])).servers[0]?.resource, endpoint);
});

test('a config over the size of a ConfigMap is not rendered, and its size is told', () => {
  const pem = 'x'.repeat(MAX_CONFIG_BYTES / 2);
  const result = renderSidecarConfig(input([{}, {}, {}], pem));
  assert.ok(result.kind === 'too-large');
  assert.ok(result.bytes > MAX_CONFIG_BYTES);
});

test('a config of exactly the size limit is rendered, and one byte more is not', () => {
  const empty = Buffer.byteLength(render(input([{}], '')).text);
  const fitting = input([{}], 'x'.repeat(MAX_CONFIG_BYTES - empty));
  assert.equal(Buffer.byteLength(render(fitting).text), MAX_CONFIG_BYTES);
  const over = renderSidecarConfig(input([{}], 'x'.repeat(MAX_CONFIG_BYTES - empty + 1)));
  assert.equal(over.kind, 'too-large');
});
