// An unmodified client written with @modelcontextprotocol/sdk (v1): 2025 versions only.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';

import { printReport, readPlan } from './plan.ts';

const plan = readPlan();
const client = new Client({ name: 'sdk-v1-client', version: '1.0.0' });
const transport = new StreamableHTTPClientTransport(new URL(plan.url));
await client.connect(transport as Transport);
const { tools } = await client.listTools();
const results: unknown[] = [];
for (const call of plan.calls) results.push(await client.callTool(call));
printReport({
  protocolVersion: transport.protocolVersion,
  serverName: client.getServerVersion()?.name,
  tools,
  results,
});
await client.close();
