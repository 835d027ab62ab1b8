// Start options of the operator: flags first, then FAIRLEAD_* variables, then defaults. All problems
// are reported at once. The only place of this program that reads the environment.

import { hostname } from 'node:os';
import { parseArgs } from 'node:util';

import type { LogLevel } from '#core/telemetry/log.ts';

const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;

export interface OperatorSettings {
  readonly kubeconfigPath: string | undefined;
  /** Empty: all namespaces. */
  readonly watchNamespaces: readonly string[];
  readonly electsLeader: boolean;
  /** Undefined: the namespace of the pod or the kubeconfig's context. */
  readonly leaseNamespace: string | undefined;
  readonly healthPort: number;
  readonly metricsPort: number;
  readonly logLevel: LogLevel;
  /** Unique to this pod. */
  readonly instance: string;
}

export type ParsedSettings =
  | { readonly kind: 'run'; readonly settings: OperatorSettings }
  | { readonly kind: 'help' }
  | { readonly kind: 'bad'; readonly problems: readonly string[] };

type Environment = Readonly<Record<string, string | undefined>>;

export const HELP = `fairlead operator: reconcile McpServers and McpBindings in a cluster

Usage: fairlead operator [options]

  --kubeconfig FILE           default: KUBECONFIG, ~/.kube/config, or the pod's service account
  --watch-namespaces A,B      only these; servers elsewhere count as absent (default: all)
  --no-leader-elect           act at once; only when there is one replica
  --lease-namespace NS        namespace of the leader lease; default: the pod's
  --health-port N             /livez and /readyz (default 8081); 0 = any free
  --metrics-port N            /metrics (default 8080); 0 = any free
  --log-level LEVEL           debug, info, warn or error (default info)
  -h, --help                  show this text

Each option may also be given as a variable: --kubeconfig as FAIRLEAD_KUBECONFIG, --no-leader-elect
as FAIRLEAD_LEADER_ELECT=false, and so on. A flag wins over its variable.

Exit codes: 0 after an orderly end, 1 failure, lost lease or a second signal, 64 wrong options,
69 port in use.

Examples:
  fairlead operator --kubeconfig ~/.kube/config --no-leader-elect
  fairlead operator --lease-namespace fairlead-system --log-level debug
`;

export function readSettings(
  argv: readonly string[],
  env: Environment = process.env,
): ParsedSettings {
  const flags = parseFlags(argv);
  if (typeof flags === 'string') return { kind: 'bad', problems: [flags] };
  if (flags.help === true) return { kind: 'help' };
  const problems: string[] = [];
  const text = (flag: TextFlag): string | undefined =>
    flags[flag] ?? nonEmpty(env[variableOf(flag)]);
  const settings: OperatorSettings = {
    kubeconfigPath: text('kubeconfig'),
    watchNamespaces: readNamespaces(text('watch-namespaces') ?? '', problems),
    electsLeader: flags['leader-elect'] ?? readSwitch(env['FAIRLEAD_LEADER_ELECT'], problems),
    leaseNamespace: text('lease-namespace'),
    healthPort: readPort('health-port', text('health-port') ?? '8081', problems),
    metricsPort: readPort('metrics-port', text('metrics-port') ?? '8080', problems),
    logLevel: readLogLevel(text('log-level') ?? 'info', problems),
    instance: nonEmpty(env['POD_NAME']) ?? hostname(),
  };
  return problems.length > 0 ? { kind: 'bad', problems } : { kind: 'run', settings };
}

type TextFlag =
  | 'kubeconfig'
  | 'watch-namespaces'
  | 'lease-namespace'
  | 'health-port'
  | 'metrics-port'
  | 'log-level';
type Flags = Partial<Record<TextFlag, string>> & {
  readonly help?: boolean;
  readonly 'leader-elect'?: boolean;
};

function parseFlags(argv: readonly string[]): Flags | string {
  const string = { type: 'string' } as const;
  try {
    const { values } = parseArgs({
      args: [...argv],
      allowNegative: true,
      options: {
        kubeconfig: string,
        'watch-namespaces': string,
        'leader-elect': { type: 'boolean' },
        'lease-namespace': string,
        'health-port': string,
        'metrics-port': string,
        'log-level': string,
        help: { type: 'boolean', short: 'h' },
      },
    });
    return values;
  } catch (error) {
    return error instanceof Error ? error.message : 'the options cannot be read';
  }
}

function variableOf(flag: string): string {
  return `FAIRLEAD_${flag.toUpperCase().replaceAll('-', '_')}`;
}

function nonEmpty(value: string | undefined): string | undefined {
  return value === undefined || value === '' ? undefined : value;
}

function readSwitch(value: string | undefined, problems: string[]): boolean {
  if (value === undefined || value === '' || value === 'true') return true;
  if (value !== 'false') problems.push('FAIRLEAD_LEADER_ELECT must be true or false');
  return false;
}

/** RFC 1123 labels, comma-separated. */
function readNamespaces(value: string, problems: string[]): string[] {
  const names = [...new Set(value.split(',').map((name) => name.trim()))].filter((n) => n !== '');
  const bad = names.filter((name) => !/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name));
  for (const name of bad)
    problems.push(`--watch-namespaces: ${JSON.stringify(name)} cannot be a namespace`);
  return names;
}

function readPort(flag: string, value: string, problems: string[]): number {
  const port = Number(value);
  if (!/^[0-9]{1,5}$/.test(value) || port > 65_535)
    problems.push(`--${flag} must be a number from 0 to 65535`);
  return port;
}

function readLogLevel(value: string, problems: string[]): LogLevel {
  const level = LOG_LEVELS.find((known) => known === value);
  if (level === undefined) problems.push(`--log-level must be one of ${LOG_LEVELS.join(', ')}`);
  return level ?? 'info';
}
