// What `fairlead dev` says: short sentences for people on a terminal, or one JSON object per line
// for programs. It decides nothing and prints no secret; errors name file, line and field.

import pc from 'picocolors';

import type { ManifestIssue } from './load-manifests.ts';
import { formatIssue } from './issue-text.ts';

export interface ServerView {
  readonly alias: string;
  readonly namespace: string;
  readonly name: string;
  readonly state: 'pending' | 'ok' | 'unavailable';
  readonly reason?: string;
  readonly era?: string;
  readonly protocolVersion?: string;
  readonly tools: readonly {
    readonly name: string;
    readonly title?: string;
    readonly description?: string;
  }[];
}

export interface ReadyView {
  readonly url: string;
  readonly binding: string;
  readonly directory: string;
  readonly revision: string;
  readonly servers: readonly ServerView[];
}

export interface DevReport {
  starting(what: string): void;
  ready(view: ReadyView): void;
  reloaded(change: {
    readonly revision: string;
    readonly servers: readonly ServerView[];
    readonly added: readonly string[];
    readonly removed: readonly string[];
  }): void;
  invalid(issues: readonly ManifestIssue[], state: { readonly isServing: boolean }): void;
  serverState(server: ServerView): void;
  call(line: Readonly<Record<string, unknown>>): void;
  processEnded(name: string, code: number | null, lastLines: readonly string[]): void;
  problem(message: string): void;
  stopping(): void;
}

type Write = (text: string) => void;
type Colors = ReturnType<typeof pc.createColors>;

export interface TextReportOptions {
  readonly out: Write;
  readonly err: Write;
  readonly isColored: boolean;
}

export function createTextReport({ out, err, isColored }: TextReportOptions): DevReport {
  const colors = pc.createColors(isColored);
  return {
    starting: (what) => out(`${colors.dim(`${what} ...`)}\n`),
    ready: (view) => out(renderReady(view, colors)),
    reloaded: ({ added, removed, servers }) =>
      out(renderReload({ added, removed, servers }, colors)),
    invalid: (issues, { isServing }) => err(renderInvalid(issues, isServing, colors)),
    serverState: (server) => out(`${renderServerLine(server, colors)}\n`),
    call: (line) => out(renderCall(line, colors)),
    processEnded: (name, code, lastLines) =>
      err(
        `${colors.red(`${name} ended with code ${String(code)}`)}\n${lastLines.map((line) => `    ${line}\n`).join('')}`,
      ),
    problem: (message) => err(`${colors.red(message)}\n`),
    stopping: () =>
      out(
        `${colors.dim('Stopping: calls in flight may finish. Press Ctrl-C again to end at once.')}\n`,
      ),
  };
}

export function createJsonReport(out: Write): DevReport {
  const event = (name: string, fields: object): void =>
    out(`${JSON.stringify({ event: name, ...fields })}\n`);
  // The first line that a program reads is the ready event.
  return {
    starting: () => {},
    ready: (view) => event('ready', view),
    reloaded: (change) => event('reloaded', change),
    invalid: (issues) => event('invalid', { issues }),
    serverState: (server) => event('server-state', { server }),
    call: (line) => event('call', line),
    processEnded: (name, code, lastLines) => event('process-ended', { name, code, lastLines }),
    problem: (message) => event('error', { message }),
    stopping: () => event('stopping', {}),
  };
}

export function renderReady(view: ReadyView, colors: Colors): string {
  const width = Math.max(
    0,
    ...view.servers.flatMap(({ tools }) => tools.map(({ name }) => name.length)),
  );
  const servers = view.servers.map((server) => {
    const tools = server.tools.map(
      (tool) =>
        `    ${tool.name.padEnd(width)}  ${colors.dim(firstSentence(tool.description ?? tool.title ?? ''))}`,
    );
    return [`  ${renderServerLine(server, colors)}`, ...tools].join('\n');
  });
  return `
${colors.bold('Fairlead serves')} ${colors.cyan(view.url)}
${colors.dim(`binding ${view.binding}; edits in ${view.directory} apply at once`)}

${servers.join('\n\n')}

Paste into a client:
  claude mcp add --transport http fairlead ${view.url}
  ${JSON.stringify({ mcpServers: { fairlead: { type: 'http', url: view.url } } })}

${colors.dim(`Status: ${view.url.replace(/mcp$/, 'status')}   One server alone: ${view.url.replace(/mcp$/, `servers/${view.servers[0]?.alias ?? 'ALIAS'}/mcp`)}   Stop: Ctrl-C`)}

`;
}

function renderServerLine(server: ServerView, colors: Colors): string {
  const name = colors.bold(server.alias);
  switch (server.state) {
    case 'ok': {
      const count = `${String(server.tools.length)} ${server.tools.length === 1 ? 'tool' : 'tools'}`;
      return `${colors.green('✓')} ${name}  ${count}${server.protocolVersion === undefined ? '' : colors.dim(`, MCP ${server.protocolVersion}`)}`;
    }
    case 'pending':
      return `${colors.yellow('…')} ${name}  is being asked for its tools`;
    case 'unavailable':
      return `${colors.red('✗')} ${name}  ${server.reason ?? 'unavailable'}`;
    default:
      return server.state satisfies never;
  }
}

function renderReload(
  change: {
    readonly servers: readonly ServerView[];
    readonly added: readonly string[];
    readonly removed: readonly string[];
  },
  colors: Colors,
): string {
  const lines = [
    ...change.added.map((name) => `  ${colors.green('+')} ${name}`),
    ...change.removed.map((name) => `  ${colors.red('-')} ${name}`),
    ...change.servers
      .filter(({ state }) => state !== 'ok')
      .map((server) => `  ${renderServerLine(server, colors)}`),
  ];
  return `${colors.green('Reloaded')}${lines.length === 0 ? '' : `\n${lines.join('\n')}`}\n`;
}

function renderInvalid(
  issues: readonly ManifestIssue[],
  isServing: boolean,
  colors: Colors,
): string {
  const count = `${String(issues.length)} ${issues.length === 1 ? 'problem' : 'problems'}`;
  const head = colors.red(
    isServing
      ? `Not applied: ${count}. The last good configuration goes on.`
      : `Nothing is served: ${count}.`,
  );
  return `${head}\n${issues.map((issue) => `  ${formatIssue(issue, colors)}\n`).join('')}`;
}

function renderCall(line: Readonly<Record<string, unknown>>, colors: Colors): string {
  const text = (key: string): string | undefined => {
    const value = line[key];
    return typeof value === 'string' ? value : undefined;
  };
  const result = text('result_class') ?? '';
  const code = text('error_code');
  const shown =
    result === 'ok'
      ? colors.green(result)
      : colors.red(code === undefined ? result : `${result} (${code})`);
  const alias = text('alias');
  const tool =
    alias === undefined ? (text('method') ?? '') : `${alias} ${text('remote_tool_name') ?? ''}`;
  const duration =
    typeof line['duration_ms'] === 'number' ? `${line['duration_ms'].toFixed(1)} ms` : '';
  return `${colors.dim('call')} ${tool}  ${shown}  ${colors.dim(duration)}\n`;
}

function firstSentence(text: string): string {
  const line = text.split('\n')[0] ?? '';
  const sentence = /^.*?[.!?](?=\s|$)/.exec(line)?.[0] ?? line;
  return sentence.length > 80 ? `${sentence.slice(0, 77)}...` : sentence;
}
