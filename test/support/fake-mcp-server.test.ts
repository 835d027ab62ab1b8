import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Client } from '@modelcontextprotocol/client';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

import { FakeMcpServer } from './fake-mcp-server.ts';

for (const answers of ['json', 'sse'] as const) {
  for (const era of ['legacy', 'modern'] as const) {
    test(`the SDK's client lists and calls on a ${era} fake that answers as ${answers}`, async () => {
      await using server = await FakeMcpServer.start({
        era,
        answers,
        pageSize: 1,
        tools: [{ name: 'one' }, { name: 'two' }],
      });
      const client = new Client(
        { name: 'test', version: '1' },
        { versionNegotiation: { mode: 'auto' } },
      );
      await client.connect(new StreamableHTTPClientTransport(new URL(server.url)));
      const { tools } = await client.listTools();
      assert.deepEqual(
        tools.map((tool) => tool.name),
        ['one', 'two'],
      );
      const result = await client.callTool({ name: 'two', arguments: { a: 1 } });
      assert.deepEqual(result.content, [{ type: 'text', text: '{"a":1}' }]);
      await client.close();
    });
  }
}
