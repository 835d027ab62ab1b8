import assert from 'node:assert/strict';
import { test } from 'node:test';

import fc from 'fast-check';

import { FairleadError } from '#core/errors.ts';
import { CLIENT_INFO } from '#core/version.ts';
import { buildCallRequest } from '#sidecar/upstream/call-request.ts';
import type { CallRoute, CallSource } from '#sidecar/upstream/call-request.ts';
import type { Side, UpstreamSession } from '#sidecar/upstream/upstream-types.ts';

import { LIMITS } from './upstream-target.ts';

const MODERN: Side = {
  era: 'modern',
  protocolVersion: '2026-07-28',
  capabilities: {},
  serverInfo: undefined,
};
const LEGACY: Side = {
  era: 'legacy',
  protocolVersion: '2025-11-25',
  capabilities: {},
  serverInfo: undefined,
};
const SESSION: UpstreamSession = {
  id: 'abc',
  side: LEGACY,
  headers: ['mcp-session-id', 'abc', 'mcp-protocol-version', '2025-11-25'],
  close: () => Promise.resolve(),
};
const INFO = JSON.stringify(CLIENT_INFO);
const P = 'io.modelcontextprotocol/';

function source(era: Side['era'], body: string, headers: CallSource['headers'] = {}): CallSource {
  const message = JSON.parse(body) as { readonly params: { readonly arguments?: unknown } };
  return { era, body: Buffer.from(body), arguments: message.params.arguments, headers };
}

function route(side: Side, more: Partial<CallRoute> = {}): CallRoute {
  return {
    tool: { name: 'create', paramHeaders: [] },
    side,
    session: side.era === 'legacy' ? SESSION : undefined,
    limits: LIMITS,
    upstreamId: undefined,
    ...more,
  };
}

function sent(from: CallSource, to: CallRoute): string {
  const { body } = buildCallRequest(from, to).outgoing;
  return Buffer.from(body as Buffer).toString('utf8');
}

const ODD = '"arguments":{ "big":12345678901234567890,"é":"\\u0041", "list":[1.0,2e3] }';

test('legacy to legacy: the same bytes with the remote name', () => {
  const body = `{"jsonrpc":"2.0" , "id":7,"method":"tools/call","params":{"name":"jira__create",${ODD},"_meta":{"progressToken":1}},"x":null}`;
  assert.equal(sent(source('legacy', body), route(LEGACY)), body.replace('jira__create', 'create'));
  assert.deepEqual(
    buildCallRequest(source('legacy', body), route(LEGACY)).outgoing.headers,
    SESSION.headers,
  );
});

test('legacy to legacy without prefix: the very bytes of the agent', () => {
  const from = source(
    'legacy',
    '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"create"}}',
  );
  assert.equal(buildCallRequest(from, route(LEGACY)).outgoing.body, from.body);
});

test('modern to modern: remote name and our clientInfo, everything else as it was (R15)', () => {
  const body = `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"_meta":{"${P}protocolVersion":"2026-07-28","${P}clientInfo":{"name":"agent","version":"1"},"${P}clientCapabilities":{"elicitation":{"form":{}}},"traceparent":"x","n":10000000000000001},"name":"jira__create",${ODD}}}`;
  const expected = body
    .replace('jira__create', 'create')
    .replace('{"name":"agent","version":"1"}', INFO);
  assert.equal(sent(source('modern', body), route(MODERN)), expected);
});

test('modern to modern: clientInfo is put in where the agent gave none', () => {
  const body = `{"id":1,"method":"tools/call","params":{"name":"create","_meta":{"${P}protocolVersion":"2026-07-28","${P}clientCapabilities":{}}}}`;
  assert.equal(
    sent(source('modern', body), route(MODERN)),
    body.replace('"_meta":{', `"_meta":{"${P}clientInfo":${INFO},`),
  );
});

test("modern to modern: the version is the side's", () => {
  const body = `{"id":1,"method":"tools/call","params":{"name":"create","_meta":{"${P}protocolVersion":"2099-01-01","${P}clientInfo":{},"${P}clientCapabilities":{}}}}`;
  const parsed = JSON.parse(sent(source('modern', body), route(MODERN))) as {
    params: { _meta: Record<string, unknown> };
  };
  assert.equal(parsed.params._meta[`${P}protocolVersion`], '2026-07-28');
});

test('the mirrored headers name what is sent, not what the agent named (R51)', () => {
  const body = `{"id":1,"method":"tools/call","params":{"name":"jira__tööl","_meta":{},"arguments":{"region":"us\\r\\nX: y","n":null}}}`;
  const agentHeaders = {
    'mcp-name': 'jira__tööl',
    'mcp-param-region': 'eu',
    'mcp-session-id': 'agent',
    origin: 'http://evil',
    cookie: 'c',
    authorization: 'a',
  };
  const paramHeaders = [
    { header: 'Mcp-Param-Region', path: ['region'] },
    { header: 'Mcp-Param-N', path: ['n'] },
  ];
  const { headers } = buildCallRequest(
    source('modern', body, agentHeaders),
    route(MODERN, { tool: { name: 'tööl', paramHeaders } }),
  ).outgoing;
  assert.deepEqual(headers, [
    'mcp-protocol-version',
    '2026-07-28',
    'mcp-method',
    'tools/call',
    'mcp-name',
    '=?base64?dMO2w7Zs?=',
    'Mcp-Param-Region',
    '=?base64?dXMNClg6IHk=?=',
  ]);
});

test('legacy to modern: the envelope is added, the progress token and the arguments keep their bytes', () => {
  const body = `{"id":1,"method":"tools/call","params":{"name":"jira__create",${ODD},"_meta":{"progressToken":10000000000000001, "own":{"a":1}}}}`;
  const envelope = `"${P}protocolVersion":"2026-07-28","${P}clientInfo":${INFO},"${P}clientCapabilities":{}`;
  const expected = `{"id":1,"method":"tools/call","params":{"name":"create",${ODD},"_meta":{${envelope},"progressToken":10000000000000001,"own":{"a":1}}}}`;
  assert.equal(sent(source('legacy', body), route(MODERN)), expected);
});

test('legacy to modern: a body without _meta, or with a null one, gets the envelope', () => {
  const envelope = `"_meta":{"${P}protocolVersion":"2026-07-28","${P}clientInfo":${INFO},"${P}clientCapabilities":{}}`;
  assert.equal(
    sent(source('legacy', '{"id":1,"params":{"name":"create"}}'), route(MODERN)),
    `{"id":1,"params":{${envelope},"name":"create"}}`,
  );
  assert.equal(
    sent(source('legacy', '{"id":1,"params":{"name":"create","_meta":null}}'), route(MODERN)),
    `{"id":1,"params":{"name":"create",${envelope}}}`,
  );
});

test('legacy to modern: envelope keys that the agent slipped in are ours afterwards', () => {
  const body = `{"id":1,"params":{"name":"create","_meta":{"${P}clientCapabilities":{"sampling":{}},"${P}logLevel":"debug"}}}`;
  const parsed = JSON.parse(sent(source('legacy', body), route(MODERN))) as {
    params: { _meta: Record<string, unknown> };
  };
  assert.deepEqual(parsed.params._meta, {
    [`${P}protocolVersion`]: '2026-07-28',
    [`${P}clientInfo`]: CLIENT_INFO,
    [`${P}clientCapabilities`]: {},
  });
});

test("modern to legacy: the envelope goes, id and progress token become ours, the agent's are kept aside", () => {
  const body = `{"id":12345678901234567890,"method":"tools/call","params":{"_meta":{"${P}protocolVersion":"2026-07-28","${P}clientInfo":{},"${P}clientCapabilities":{},"${P}logLevel":"info","progressToken":"tök","traceparent":"x"},"name":"jira__create",${ODD}}}`;
  const { outgoing, replaced } = buildCallRequest(
    source('modern', body),
    route(LEGACY, { upstreamId: 'f-1' }),
  );
  assert.equal(
    Buffer.from(outgoing.body as Buffer).toString(),
    `{"id":"f-1","method":"tools/call","params":{"_meta":{"progressToken":"f-1","traceparent":"x"},"name":"create",${ODD}}}`,
  );
  assert.deepEqual(replaced, { id: '12345678901234567890', progressToken: '"tök"' });
  assert.deepEqual(outgoing.headers, SESSION.headers);
});

test('a server without session ids still gets the version header', () => {
  const from = source('legacy', '{"id":1,"params":{"name":"create"}}');
  assert.deepEqual(buildCallRequest(from, route(LEGACY, { session: undefined })).outgoing.headers, [
    'mcp-protocol-version',
    '2025-11-25',
  ]);
});

const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const traces: readonly (readonly [
  what: string,
  headers: CallSource['headers'],
  expected: readonly string[],
])[] = [
  [
    'well-formed',
    { traceparent: TRACEPARENT, tracestate: 'a=1' },
    ['traceparent', TRACEPARENT, 'tracestate', 'a=1'],
  ],
  ['malformed', { traceparent: 'x', tracestate: 'a=1' }, []],
  [
    'with an endless state',
    { traceparent: TRACEPARENT, tracestate: 'a'.repeat(513) },
    ['traceparent', TRACEPARENT],
  ],
  ['absent', { tracestate: 'a=1', baggage: 'user=1' }, []],
];

for (const [what, headers, expected] of traces) {
  test(`trace context that is ${what} gives ${expected.length / 2} headers`, () => {
    const from = source('legacy', '{"id":1,"params":{"name":"create"}}', headers);
    assert.deepEqual(
      buildCallRequest(from, route(LEGACY)).outgoing.headers.slice(SESSION.headers.length),
      expected,
    );
  });
}

test('a body that two parsers read differently is never built', () => {
  const from = source('legacy', '{"id":1,"params":{"name":"allowed","Name":"forbidden"}}');
  assert.throws(
    () => buildCallRequest(from, route(LEGACY)),
    (error) => error instanceof FairleadError && error.code === 'INVALID_REQUEST',
  );
});

test('on every leg the arguments and unknown members arrive as they were sent', () => {
  const eras = fc.constantFrom<Side['era']>('legacy', 'modern');
  const params = fc.record({
    name: fc.string(),
    arguments: fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()),
    other: fc.jsonValue(),
  });
  const meta = fc.dictionary(fc.string(), fc.jsonValue());
  fc.assert(
    fc.property(
      fc.record({ era: eras, side: fc.constantFrom(LEGACY, MODERN), call: params, extra: meta }),
      ({ era, side, call, extra }) => {
        const text = JSON.stringify({
          id: 1,
          method: 'tools/call',
          params: { ...call, _meta: extra },
        });
        let built: string;
        try {
          built = sent(source(era, text), route(side, { upstreamId: 'u' }));
        } catch (error) {
          assert.ok(error instanceof FairleadError);
          return;
        }
        const got = JSON.parse(built) as { id: unknown; params: Record<string, unknown> };
        assert.equal(got.id, 'u');
        assert.equal(got.params['name'], 'create');
        assert.deepEqual(got.params['arguments'], JSON.parse(JSON.stringify(call.arguments)));
        assert.deepEqual(got.params['other'], JSON.parse(JSON.stringify(call.other)));
        for (const [key, value] of Object.entries(JSON.parse(JSON.stringify(extra)) as object)) {
          if (key !== 'progressToken')
            assert.deepEqual((got.params['_meta'] as Record<string, unknown>)[key], value);
        }
      },
    ),
    { numRuns: 300 },
  );
});
