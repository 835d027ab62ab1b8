// The text of `fairlead --help`.

import type { Command } from './commands.ts';

export function renderHelp(commands: Readonly<Record<string, Command>>): string {
  const shown = Object.entries(commands).filter(([, { isInternal }]) => isInternal !== true);
  const width = Math.max(...shown.map(([name]) => name.length));
  const lines = shown.map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`);
  return `fairlead: a safe, local path from AI agents to remote MCP servers

Usage: fairlead COMMAND [options]

Commands:
${lines.join('\n')}

"fairlead COMMAND --help" says more about one of them.

Examples:
  fairlead dev ./mcp                    serve ./mcp/*.yaml on http://127.0.0.1:7317/mcp
  fairlead validate ./mcp               check it before it is committed
  fairlead render ./mcp --out ./out     see what the sidecars will read
  fairlead explain egress URL -f ./mcp  say whether URL may be reached, and why
`;
}
