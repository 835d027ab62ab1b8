// An unmodified client written with @modelcontextprotocol/client (v2), pinned to the era under test.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

import { printReport, readPlan } from './plan.ts';

const plan = readPlan();
const mode = plan.era === 'legacy' ? 'legacy' : { pin: '2026-07-28' };
const client = new Client(
  { name: 'sdk-v2-client', version: '1.0.0' },
  { versionNegotiation: { mode } },
);
const transport = new StreamableHTTPClientTransport(new URL(plan.url));
await client.connect(transport);
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
