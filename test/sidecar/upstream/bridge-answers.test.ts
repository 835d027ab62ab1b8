import assert from 'node:assert/strict';
import { test } from 'node:test';

import { bridgeMessage } from '#sidecar/upstream/bridge-answers.ts';
import type { BridgeContext, BridgedMessage } from '#sidecar/upstream/bridge-answers.ts';
import { readServerMessage } from '#sidecar/upstream/server-message.ts';

const SERVER_INFO = '"io.modelcontextprotocol/serverInfo":{"name":"s"}';
const toModern: BridgeContext = {
  serverEra: 'legacy',
  agentEra: 'modern',
  replaced: { id: '12345678901234567890', progressToken: '"tök"' },
  logLevel: 'warning',
  wrapsOutput: false,
  serverInfo: { name: 's' },
};
const toLegacy: BridgeContext = {
  serverEra: 'modern',
  agentEra: 'legacy',
  replaced: undefined,
  logLevel: undefined,
  wrapsOutput: false,
  serverInfo: undefined,
};
const sameEra: BridgeContext = { ...toLegacy, agentEra: 'modern' };

function bridged(text: string, context: BridgeContext): BridgedMessage {
  return bridgeMessage(readServerMessage(text), context);
}

function textOf(message: BridgedMessage): string {
  assert.ok(message.kind === 'response' || message.kind === 'notification', message.kind);
  return message.text;
}

function faultOf(message: BridgedMessage): string {
  return message.kind === 'fault' ? message.error.code : message.kind;
}

const rows: readonly (readonly [what: string, context: BridgeContext, from: string, to: string])[] =
  [
    [
      "a legacy result becomes complete, with serverInfo and the agent's id; values keep their bytes",
      toModern,
      '{"jsonrpc":"2.0","id":"u","result":{"content":[ ],"n":10000000000000001,"x":1.0}}',
      `{"jsonrpc":"2.0","id":12345678901234567890,"result":{"resultType":"complete","content":[ ],"n":10000000000000001,"x":1.0,"_meta":{${SERVER_INFO}}}}`,
    ],
    [
      'a legacy result that claims to ask for input is complete all the same',
      toModern,
      '{"id":"u","result":{"resultType":"input_required","content":[]}}',
      `{"id":12345678901234567890,"result":{"resultType":"complete","content":[],"_meta":{${SERVER_INFO}}}}`,
    ],
    [
      'other _meta of a legacy result stays, its own serverInfo is ours to say',
      toModern,
      '{"id":"u","result":{"_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"other"}}}}',
      `{"id":12345678901234567890,"result":{"resultType":"complete","_meta":{${SERVER_INFO},"a":1}}}`,
    ],
    [
      "an error of a legacy server keeps message and data, and gets the agent's id",
      toModern,
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"no","data":{"n":10000000000000001}}}',
      '{"jsonrpc":"2.0","id":12345678901234567890,"error":{"code":-32603,"message":"no","data":{"n":10000000000000001}}}',
    ],
    [
      'an error without an id gets one',
      toModern,
      '{"error":{"code":1,"message":"no"}}',
      '{"id":12345678901234567890,"error":{"code":1,"message":"no"}}',
    ],
    [
      '-32002 becomes -32602',
      toModern,
      '{"id":"u","error":{"code":-32002,"message":"m"}}',
      '{"id":12345678901234567890,"error":{"code":-32602,"message":"m"}}',
    ],
    [
      'a reserved code of a legacy server becomes an internal error',
      toModern,
      '{"id":"u","error":{"code":-32050,"message":"m"}}',
      '{"id":12345678901234567890,"error":{"code":-32603,"message":"m"}}',
    ],
    [
      '-32001 of a legacy server passes',
      toModern,
      '{"id":"u","error":{"code":-32001,"message":"m"}}',
      '{"id":12345678901234567890,"error":{"code":-32001,"message":"m"}}',
    ],
    [
      "progress goes back under the agent's token",
      toModern,
      '{"method":"notifications/progress","params":{"progressToken":"u","progress":0.10}}',
      '{"method":"notifications/progress","params":{"progressToken":"tök","progress":0.10}}',
    ],
    [
      'a modern result loses resultType, ttlMs and cacheScope, and nothing else',
      toLegacy,
      '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":1,"cacheScope":"public","content":[],"n":10000000000000001,"_meta":{"a":1}}}',
      '{"jsonrpc":"2.0","id":1,"result":{"content":[],"n":10000000000000001,"_meta":{"a":1}}}',
    ],
    [
      'a modern result without resultType is complete (R79)',
      toLegacy,
      '{"id":1,"result":{"content":[]}}',
      '{"id":1,"result":{"content":[]}}',
    ],
    [
      'structuredContent that is an object stays',
      toLegacy,
      '{"id":1,"result":{"structuredContent":{"a":1}}}',
      '{"id":1,"result":{"structuredContent":{"a":1}}}',
    ],
    [
      'structuredContent that is a list is wrapped, and shown as text',
      toLegacy,
      '{"id":1,"result":{"content":[],"structuredContent":[10000000000000001]}}',
      '{"id":1,"result":{"content":[{"type":"text","text":"[10000000000000001]"}],"structuredContent":{"result":[10000000000000001]}}}',
    ],
    [
      'a wrapped value is not shown twice',
      toLegacy,
      '{"id":1,"result":{"content":[{"type":"text","text":"7"}],"structuredContent":7}}',
      '{"id":1,"result":{"content":[{"type":"text","text":"7"}],"structuredContent":{"result":7}}}',
    ],
    [
      'a wrapped value is shown beside content that is no text',
      toLegacy,
      '{"id":1,"result":{"content":[{"type":"image"} ],"structuredContent":null}}',
      '{"id":1,"result":{"content":[{"type":"image"} ,{"type":"text","text":"null"}],"structuredContent":{"result":null}}}',
    ],
    [
      'structuredContent of a tool with a wrapped schema is wrapped, object or not',
      { ...toLegacy, wrapsOutput: true },
      '{"id":1,"result":{"structuredContent":{"a":1}}}',
      '{"id":1,"result":{"structuredContent":{"result":{"a":1}}}}',
    ],
    [
      '-32020 means nothing to a legacy agent',
      toLegacy,
      '{"id":1,"error":{"code":-32020,"message":"m"}}',
      '{"id":1,"error":{"code":-32603,"message":"m"}}',
    ],
    [
      'progress passes to a legacy agent',
      toLegacy,
      '{"method":"notifications/progress","params":{"progressToken":1}}',
      '{"method":"notifications/progress","params":{"progressToken":1}}',
    ],
    [
      'within one era everything passes',
      sameEra,
      '{"id":1,"result":{"resultType":"task","x":1}}',
      '{"id":1,"result":{"resultType":"task","x":1}}',
    ],
    [
      "within one era an error without an id gets the agent's",
      { ...sameEra, agentId: 'a' },
      '{"id":null,"error":{"code":1}}',
      '{"id":"a","error":{"code":1}}',
    ],
    [
      'within one era an id stays in the form it came in',
      { ...sameEra, agentId: 'a' },
      '{"id":"\\u0061","result":{}}',
      '{"id":"\\u0061","result":{}}',
    ],
    [
      'within one era unknown notifications pass',
      sameEra,
      '{"method":"notifications/x"}',
      '{"method":"notifications/x"}',
    ],
    [
      'within one era replaced ids are put back',
      { ...sameEra, replaced: { id: '3', progressToken: undefined } },
      '{"id":"u","result":{}}',
      '{"id":3,"result":{}}',
    ],
    [
      'a log message at the wanted level passes to a modern agent',
      toModern,
      '{"method":"notifications/message","params":{"level":"error","data":1}}',
      '{"method":"notifications/message","params":{"level":"error","data":1}}',
    ],
  ];

for (const [what, context, from, to] of rows)
  test(what, () => assert.equal(textOf(bridged(from, context)), to));

const dropped: readonly (readonly [what: string, context: BridgeContext, from: string])[] = [
  [
    'a log message below the level',
    toModern,
    '{"method":"notifications/message","params":{"level":"info"}}',
  ],
  [
    'a log message of no known level',
    toModern,
    '{"method":"notifications/message","params":{"level":"loud"}}',
  ],
  [
    'a log message for a request without a level',
    { ...toModern, logLevel: undefined },
    '{"method":"notifications/message","params":{"level":"emergency"}}',
  ],
  [
    'a log message for a request with an unknown level',
    { ...toModern, logLevel: 'loud' },
    '{"method":"notifications/message","params":{"level":"emergency"}}',
  ],
  [
    'progress for an agent that gave no token',
    { ...toModern, replaced: { id: '1', progressToken: undefined } },
    '{"method":"notifications/progress","params":{"progressToken":"u"}}',
  ],
  ["a list change on a call's stream", toModern, '{"method":"notifications/tools/list_changed"}'],
  [
    'a log message for a legacy agent, which set no level',
    toLegacy,
    '{"method":"notifications/message","params":{"level":"error"}}',
  ],
];

for (const [what, context, from] of dropped)
  test(`${what} is dropped (R50)`, () => assert.equal(bridged(from, context).kind, 'dropped'));

const faults: readonly (readonly [
  what: string,
  context: BridgeContext,
  from: string,
  code: string,
])[] = [
  [
    'a question for a legacy agent',
    toLegacy,
    '{"id":1,"result":{"resultType":"input_required","inputRequests":{}}}',
    'NOT_SUPPORTED_BY_SERVER',
  ],
  [
    'a wanted capability',
    toLegacy,
    '{"id":1,"error":{"code":-32021,"message":"m"}}',
    'NOT_SUPPORTED_BY_SERVER',
  ],
  [
    'a wanted URL elicitation',
    toModern,
    '{"id":"u","error":{"code":-32042,"message":"m"}}',
    'NOT_SUPPORTED_BY_SERVER',
  ],
  [
    'an unknown kind of result',
    toLegacy,
    '{"id":1,"result":{"resultType":"task"}}',
    'UPSTREAM_PROTOCOL_ERROR',
  ],
  [
    'a kind of result that is no string',
    toLegacy,
    '{"id":1,"result":{"resultType":7}}',
    'UPSTREAM_PROTOCOL_ERROR',
  ],
  ['a result that is no object', toLegacy, '{"id":1,"result":[]}', 'UPSTREAM_PROTOCOL_ERROR'],
  [
    'an error without a code',
    toLegacy,
    '{"id":1,"error":{"message":"m"}}',
    'UPSTREAM_PROTOCOL_ERROR',
  ],
  [
    'an error with a fractional code',
    toLegacy,
    '{"id":1,"error":{"code":1.5}}',
    'UPSTREAM_PROTOCOL_ERROR',
  ],
  [
    'both result and error',
    toLegacy,
    '{"id":1,"result":{},"error":{"code":1}}',
    'UPSTREAM_PROTOCOL_ERROR',
  ],
  ['neither', toLegacy, '{"id":1}', 'UPSTREAM_PROTOCOL_ERROR'],
  ['a list', toLegacy, '[{"id":1,"result":{}}]', 'UPSTREAM_PROTOCOL_ERROR'],
  ['broken JSON', toLegacy, '{"id":1,"result":{"a"', 'UPSTREAM_PROTOCOL_ERROR'],
  ['broken JSON inside', toLegacy, '{"id":1,"result":{"a" 1}}', 'UPSTREAM_PROTOCOL_ERROR'],
  [
    'content that is no JSON',
    toLegacy,
    '{"id":1,"result":{"content":[x],"structuredContent":1}}',
    'UPSTREAM_PROTOCOL_ERROR',
  ],
];

for (const [what, context, from, code] of faults)
  test(`an answer with ${what} is ${code}`, () =>
    assert.equal(faultOf(bridged(from, context)), code));

test('a request of the server is to be answered, not shown', () => {
  assert.equal(bridged('{"id":1,"method":"ping"}', toModern).kind, 'request');
});

test("the server's own code is told, also where the agent sees another one", () => {
  const message = bridged('{"id":1,"error":{"code":-32020,"message":"m"}}', toLegacy);
  assert.equal(message.kind === 'response' ? message.errorCode : undefined, -32020);
});
