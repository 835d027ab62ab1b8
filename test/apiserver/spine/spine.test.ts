// The whole path on real parts: from `kubectl apply` to a tool call by unmodified clients.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import type { ClientReport } from '#test/support/clients/plan.ts';
import { whyNoNetNamespace } from '#test/support/net-namespace.ts';
import { npmProgram } from '#test/support/npm-program.ts';
import { pythonWith } from '#test/support/python-venv.ts';
import {
  AGENT_PORT,
  SERVERS,
  type ServerName,
  type SpineWorld,
  serverYaml,
  startSpineWorld,
} from '#test/support/spine-world.ts';

const skip = whyNoNetNamespace() ?? false;
const CLIENTS = join(import.meta.dirname, '../../support/clients');

const ALLOW: Readonly<Record<ServerName, readonly string[]>> = {
  everything: [
    'echo',
    'get-sum',
    'get-structured-content',
    'get-tiny-image',
    'get-annotated-message',
    'trigger-long-running-operation',
  ],
  desk: ['*'],
};

const CALLS: Readonly<
  Record<
    ServerName,
    readonly { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> }[]
  >
> = {
  everything: [
    { name: 'echo', arguments: { message: 'grüße — 你好 "quoted"' } },
    { name: 'get-sum', arguments: { a: 2, b: 40 } },
    { name: 'get-structured-content', arguments: { location: 'New York' } },
    { name: 'get-tiny-image', arguments: {} },
    { name: 'get-annotated-message', arguments: { messageType: 'error', includeImage: true } },
  ],
  desk: [
    { name: 'count-words', arguments: { text: 'one two\nthree' } },
    { name: 'brew-tea', arguments: { kind: 'mint', steps: 2 } },
  ],
};

interface ClientProgram {
  readonly title: string;
  readonly command: () => readonly string[];
  readonly eras: readonly ('legacy' | 'modern')[];
}

const PROGRAMS: readonly ClientProgram[] = [
  {
    title: 'SDK v1',
    command: () => [process.execPath, join(CLIENTS, 'sdk-v1-client.ts')],
    eras: ['legacy'],
  },
  {
    title: 'SDK v2',
    command: () => [process.execPath, join(CLIENTS, 'sdk-v2-client.ts')],
    eras: ['legacy', 'modern'],
  },
  {
    title: 'Python mcp',
    command: () => [pythonWith(['mcp==2.3.0']), join(CLIENTS, 'python_client.py')],
    eras: ['legacy', 'modern'],
  },
];

const OWN_ERA: Readonly<Record<ServerName, 'legacy' | 'modern'>> = {
  everything: 'legacy',
  desk: 'modern',
};

let world: SpineWorld;

before(async () => {
  if (skip === false) world = await startSpineWorld(ALLOW);
});
after(async () => {
  if (skip === false) await world[Symbol.asyncDispose]();
});

/** What both eras say alike: the envelope of a result is its era's, the content is the tool's. */
function comparable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(comparable);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).filter(
    ([key, member]) =>
      !['resultType', '_meta', 'execution', 'ttlMs', 'cacheScope'].includes(key) &&
      !(key === 'isError' && member === false),
  );
  return Object.fromEntries(entries.map(([key, member]) => [key, comparable(member)]));
}

function tools(report: ClientReport, isAllowed: (name: string) => boolean): unknown {
  return comparable(
    report.tools
      .filter((tool) => isAllowed(String(tool['name'])))
      .toSorted((a, b) => (String(a['name']) < String(b['name']) ? -1 : 1)),
  );
}

for (const { title, command, eras } of PROGRAMS) {
  for (const era of eras) {
    for (const name of ['everything', 'desk'] as const) {
      test(`${title} (${era}) lists and calls ${name} through the sidecar as a direct client does (R7)`, {
        skip,
      }, async () => {
        const calls = CALLS[name];
        // Directly only a client of the server's own era gets anywhere; SDK v1 has the old era alone.
        const directCommand =
          OWN_ERA[name] === 'modern' && title === 'SDK v1'
            ? (PROGRAMS[1]?.command() ?? [])
            : command();
        const direct = await world.runClient(directCommand, {
          url: `http://127.0.0.1:${String(SERVERS[name].plainPort)}/mcp`,
          era: OWN_ERA[name],
          calls,
        });
        const through = await world.runClient(command(), {
          url: `http://127.0.0.1:${String(AGENT_PORT)}/servers/${name}/mcp`,
          era,
          calls,
        });
        const allowed = ALLOW[name];
        const isAllowed = (tool: string): boolean =>
          allowed.includes('*') || allowed.includes(tool);
        assert.deepEqual(tools(through, isAllowed), tools(direct, isAllowed));
        assert.equal(
          through.tools.every((tool) => isAllowed(String(tool['name']))),
          true,
        );
        assert.deepEqual(comparable(through.results), comparable(direct.results));
      });
    }
    test(`${title} (${era}) finds both servers merged under prefixed names`, { skip }, async () => {
      const calls = [
        { name: 'everything__echo', arguments: { message: 'hi' } },
        { name: 'desk__count-words', arguments: { text: 'a b' } },
      ];
      const report = await world.runClient(command(), {
        url: `http://127.0.0.1:${String(AGENT_PORT)}/mcp`,
        era,
        calls,
      });
      const names = report.tools.map((tool) => String(tool['name']));
      assert.deepEqual(
        names.filter((tool) => tool.startsWith('everything__')).toSorted(),
        ALLOW.everything.map((tool) => `everything__${tool}`).toSorted(),
      );
      assert.ok(names.includes('desk__count-words') && names.includes('desk__brew-tea'));
      assert.match(JSON.stringify(report.results), /Echo: hi/);
      assert.match(JSON.stringify(report.results), /"words":2/);
    });
  }
}

test('the MCP Inspector lists and calls, unmodified', { skip }, async () => {
  const inspect = (...args: string[]): Promise<string> =>
    world.run([
      process.execPath,
      npmProgram('@modelcontextprotocol/inspector@2.12.0', 'mcp-inspector'),
      '--cli',
      `http://127.0.0.1:${String(AGENT_PORT)}/mcp`,
      '--transport',
      'http',
      ...args,
    ]);
  const list = JSON.parse(await inspect('--method', 'tools/list')) as { tools: { name: string }[] };
  assert.ok(list.tools.some((tool) => tool.name === 'everything__get-sum'));
  const called = JSON.parse(
    await inspect(
      '--method',
      'tools/call',
      '--tool-name',
      'everything__get-sum',
      '--tool-arg',
      'a=2',
      'b=40',
    ),
  ) as { content: { text: string }[] };
  assert.match(called.content[0]?.text ?? '', /42/);
});

test('a tool that kubectl removes disappears and is refused without a restart, while its call in flight ends well', {
  skip,
}, async () => {
  const url = `http://127.0.0.1:${String(AGENT_PORT)}/mcp`;
  const slow = {
    name: 'everything__trigger-long-running-operation',
    arguments: { duration: 12, steps: 6 },
  };
  const client = PROGRAMS[1]?.command() ?? [];
  const inFlight = world.runClient(client, { url, era: 'legacy', calls: [slow] });
  await world.sidecarHas(({ inFlight: calls }) => calls === 1);
  const before = await world.configMapData();
  await world.plane.apply(serverYaml('everything', ['echo']));
  const changed = await world.untilConfigMap((config) => config !== before);
  await world.mount(changed);
  const revision = String((JSON.parse(changed) as { revision: string }).revision);
  await world.sidecarHas(({ revision: running }) => running === revision);
  const list = await world.runClient(client, { url, era: 'legacy', calls: [] });
  assert.deepEqual(
    list.tools
      .map((tool) => String(tool['name']))
      .filter((name) => name.startsWith('everything__')),
    ['everything__echo'],
  );
  await assert.rejects(
    world.runClient(client, { url, era: 'legacy', calls: [slow] }),
    /-32602|Unknown tool/,
  );
  const { results } = await inFlight;
  assert.match(JSON.stringify(results), /Long running operation completed/);
  assert.equal(world.sidecar.exit, undefined);
});
