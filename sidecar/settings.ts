// Start options of the sidecar: flags first, then FAIRLEAD_* variables, then defaults. All problems
// are reported at once. Nothing here can widen what the configuration allows, except the
// development mode, which is a start option on purpose and never part of a configuration.

import { join } from 'node:path';
import { parseArgs } from 'node:util';

import type { LogLevel } from '#core/telemetry/log.ts';

export const DEFAULT_HEALTH_PORT = 7318;
const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;

/**
 * Names are resolved on libuv's threads, on half of them at once: with the usual four, two names
 * whose resolver is silent would hold up all others, and a dead server must not delay another.
 */
const THREADS = '64';

/** Counts only before the first file is read or the first name resolved. The environment's own word stands. */
export function sizeThreadPool(env: Record<string, string | undefined> = process.env): void {
  env['UV_THREADPOOL_SIZE'] ??= THREADS;
}

export interface SidecarSettings {
  readonly configDirectory: string;
  /** Without one, no last good configuration survives a restart. */
  readonly stateDirectory: string | undefined;
  /** In place of the configuration's; 0 takes any free port. */
  readonly agentPort: number | undefined;
  readonly healthPort: number;
  readonly healthHost: string;
  readonly isDevelopment: boolean;
  readonly isNativeSidecar: boolean;
  readonly exitsWithParent: boolean;
  /** In place of the configuration's. */
  readonly logLevel: LogLevel | undefined;
  readonly fingerprintKeyFile: string | undefined;
  /** Certificate and key for an egress proxy, where the configuration names one. */
  readonly proxyClientDirectory: string | undefined;
}

export type ParsedSettings =
  | { readonly kind: 'run'; readonly settings: SidecarSettings }
  | { readonly kind: 'help' }
  | { readonly kind: 'bad'; readonly problems: readonly string[] };

type Environment = Readonly<Record<string, string | undefined>>;

const TEXT_FLAGS = [
  'config-dir',
  'state-dir',
  'port',
  'health-port',
  'health-host',
  'log-level',
  'fingerprint-key-file',
  'proxy-client-dir',
] as const;
const SWITCHES = ['development', 'native-sidecar', 'exit-with-parent'] as const;
type TextFlag = (typeof TEXT_FLAGS)[number];
type Switch = (typeof SWITCHES)[number];

export const HELP = `fairlead sidecar: serve an agent's MCP requests from a rendered configuration

Usage: fairlead sidecar --config-dir DIR [options]

  --config-dir DIR            directory that holds config.json (watched for changes)
  --state-dir DIR             where the last good configuration is kept over restarts
  --port N                    agent port on 127.0.0.1, in place of the configuration's; 0 = any free
  --health-port N             port of /livez, /readyz and /metrics (default ${DEFAULT_HEALTH_PORT}); 0 = any free
  --health-host HOST          its address (default: POD_IP when set; 127.0.0.1 in development; else 0.0.0.0)
  --development               accept plain http to loopback addresses
  --native-sidecar            on SIGTERM refuse new requests at once (the application has already gone)
  --exit-with-parent          shut down when standard input closes
  --log-level LEVEL           debug, info, warn or error, in place of the configuration's
  --fingerprint-key-file F    32-byte key for fingerprints of tenants and users; made when absent
  --proxy-client-dir DIR      tls.crt, tls.key and ca.crt for an https egress proxy (watched for changes)
  -h, --help                  show this text

Each option may also be given as a variable: --config-dir as FAIRLEAD_CONFIG_DIR, --development as
FAIRLEAD_DEVELOPMENT=true, and so on. A flag wins over its variable.

SIGTERM and SIGINT end it in order, once the calls in flight are answered; a second one after half
a second or more ends it at once.

Exit codes: 0 after an orderly end, 1 failure or a second signal, 64 wrong options, 69 port in use,
78 configuration directory missing or unreadable.

Examples:
  fairlead sidecar --config-dir /etc/fairlead --state-dir /var/lib/fairlead
  fairlead sidecar --config-dir ./rendered --development --port 0 --health-port 0
`;

export function readSettings(
  argv: readonly string[],
  env: Environment = process.env,
): ParsedSettings {
  const flags = readFlags(argv);
  if (flags.wantsHelp) return { kind: 'help' };
  const problems = [...flags.problems];
  const text = (flag: TextFlag): string | undefined =>
    flags.texts.get(flag) ?? nonEmpty(env[variableOf(flag)]);
  const port = (flag: 'port' | 'health-port'): number | undefined => {
    const given = flags.texts.get(flag) ?? withoutServiceLink(env[variableOf(flag)]);
    return given === undefined ? undefined : parsePort(flag, given, problems);
  };
  const isOn = (flag: Switch): boolean =>
    flags.switches.has(flag) || parseSwitch(flag, env[variableOf(flag)], problems);
  const isDevelopment = isOn('development');
  const stateDirectory = text('state-dir');
  const settings: SidecarSettings = {
    configDirectory: text('config-dir') ?? missing('config-dir', problems),
    stateDirectory,
    agentPort: port('port'),
    healthPort: port('health-port') ?? DEFAULT_HEALTH_PORT,
    healthHost:
      text('health-host') ?? nonEmpty(env.POD_IP) ?? (isDevelopment ? '127.0.0.1' : '0.0.0.0'),
    isDevelopment,
    isNativeSidecar: isOn('native-sidecar'),
    exitsWithParent: isOn('exit-with-parent'),
    logLevel: parseLogLevel(text('log-level'), problems),
    fingerprintKeyFile:
      text('fingerprint-key-file') ??
      (stateDirectory === undefined ? undefined : join(stateDirectory, 'fingerprint.key')),
    proxyClientDirectory: text('proxy-client-dir'),
  };
  return problems.length > 0 ? { kind: 'bad', problems } : { kind: 'run', settings };
}

interface Flags {
  readonly wantsHelp: boolean;
  readonly texts: ReadonlyMap<TextFlag, string>;
  readonly switches: ReadonlySet<Switch>;
  readonly problems: readonly string[];
}

/** Not strict: parseArgs would stop at the first problem, and all are to be told. */
function readFlags(argv: readonly string[]): Flags {
  const options = Object.fromEntries([
    ...TEXT_FLAGS.map((flag) => [flag, { type: 'string' as const }]),
    ...[...SWITCHES, 'help'].map((flag) => [
      flag,
      { type: 'boolean' as const, ...(flag === 'help' ? { short: 'h' } : {}) },
    ]),
  ]);
  const { tokens } = parseArgs({
    args: [...argv],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const texts = new Map<TextFlag, string>();
  const switches = new Set<Switch>();
  const problems: string[] = [];
  let wantsHelp = false;
  for (const token of tokens) {
    if (token.kind === 'positional')
      problems.push(`unexpected argument ${JSON.stringify(token.value)}`);
    if (token.kind !== 'option') continue;
    const { name, value } = token;
    if (name === 'help') wantsHelp = true;
    else if (isOneOf(SWITCHES, name)) {
      if (value === undefined) switches.add(name);
      else problems.push(`--${name} takes no value`);
    } else if (!isOneOf(TEXT_FLAGS, name)) problems.push(`unknown option ${token.rawName}`);
    else if (value === undefined || value === '') problems.push(`--${name} needs a value`);
    else texts.set(name, value);
  }
  return { wantsHelp, texts, switches, problems };
}

function variableOf(flag: TextFlag | Switch): string {
  return `FAIRLEAD_${flag.replaceAll('-', '_').toUpperCase()}`;
}

function nonEmpty(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}

/** A Service named `fairlead` makes Kubernetes set FAIRLEAD_PORT=tcp://… in every pod beside it. */
function withoutServiceLink(value: string | undefined): string | undefined {
  return value === undefined || value === '' || /^(tcp|udp|sctp):\/\//.test(value)
    ? undefined
    : value;
}

function parsePort(flag: string, text: string, problems: string[]): number {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : NaN;
  if (port >= 0 && port <= 65_535) return port;
  problems.push(`--${flag} must be a port from 0 to 65535, not ${JSON.stringify(text)}`);
  return 0;
}

function parseSwitch(flag: Switch, value: string | undefined, problems: string[]): boolean {
  if (value === undefined || value === '' || value === 'false' || value === '0') return false;
  if (value === 'true' || value === '1') return true;
  problems.push(`${variableOf(flag)} must be true or false, not ${JSON.stringify(value)}`);
  return false;
}

function parseLogLevel(text: string | undefined, problems: string[]): LogLevel | undefined {
  if (text === undefined || isOneOf(LOG_LEVELS, text)) return text;
  problems.push(`--log-level must be one of ${LOG_LEVELS.join(', ')}, not ${JSON.stringify(text)}`);
  return undefined;
}

function missing(flag: TextFlag, problems: string[]): string {
  problems.push(`--${flag} (or ${variableOf(flag)}) is required`);
  return '';
}

function isOneOf<Word extends string>(words: readonly Word[], text: string): text is Word {
  return (words as readonly string[]).includes(text);
}
