// The subcommands: one line each for the help text, and where each one's program is loaded from.
// Nothing is loaded before it is asked for: the sidecar must start fast and never sees the others.

export interface Command {
  readonly summary: string;
  /** Started by our own programs only; not shown. */
  readonly isInternal?: true;
  readonly load: () => Promise<(argv: readonly string[]) => Promise<number> | number>;
}

export const COMMANDS: Readonly<Record<string, Command>> = {
  dev: {
    summary: 'serve a directory of YAML to the agents on this machine, live',
    load: async () => (await import('#operator/dev/dev-command.ts')).devCommand,
  },
  'dev-guard': {
    summary: 'run one local program and end it with its parent',
    isInternal: true,
    load: async () => (await import('#operator/dev/process-guard.ts')).guardCommand,
  },
  validate: {
    summary: 'check YAML as the API server and the operator would',
    load: async () => (await import('#operator/dev/validate-command.ts')).validateCommand,
  },
  render: {
    summary: 'write the sidecar configurations that the operator would write',
    load: async () => (await import('#operator/dev/render-command.ts')).renderCommand,
  },
  explain: {
    summary: 'say whether a URL may be reached, and which step of the guard decides',
    load: async () => (await import('#operator/dev/explain-command.ts')).explainCommand,
  },
  'resolve-host': {
    summary: 'ask the system for the addresses of one name, for explain',
    isInternal: true,
    load: async () => (await import('#operator/dev/resolve-host.ts')).resolveHostCommand,
  },
  operator: {
    summary: 'reconcile McpServers and McpBindings in a cluster',
    load: async () => (await import('#operator/main.ts')).main,
  },
  sidecar: {
    summary: "serve one pod's agents from a rendered configuration",
    load: async () => (await import('#sidecar/main.ts')).main,
  },
  completion: {
    summary: 'print the completion script for bash, zsh or fish',
    load: async () => (await import('./completion.ts')).completionCommand,
  },
  version: {
    summary: 'print the version',
    load: async () => (await import('./version.ts')).versionCommand,
  },
};

/** The names that people may type. */
export const COMMAND_NAMES: readonly string[] = Object.keys(COMMANDS).filter(
  (name) => COMMANDS[name]?.isInternal !== true,
);
