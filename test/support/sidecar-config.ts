// A valid rendered configuration for tests, and the directory layouts that it comes in: a plain
// file (as `fairlead dev` writes it) and a kubelet's volume, whose `..data` link is swapped.

import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { encodeSidecarConfig, PROTOCOL_VERSIONS } from '#core/config/sidecar-config.ts';
import type { ServerConfig, SidecarConfigBody } from '#core/config/sidecar-config.ts';

/** Development mode is needed for plain http to loopback. */
export function serverConfig(
  alias: string,
  port = 9,
  edit: Partial<ServerConfig> = {},
): ServerConfig {
  const endpoint = `http://127.0.0.1:${port}/mcp`;
  return {
    alias,
    namespace: 'tools',
    name: alias,
    endpoint,
    transport: 'StreamableHTTP',
    resource: endpoint,
    protocol: { era: 'Auto', versions: [...PROTOCOL_VERSIONS] },
    egress: { allowedHosts: ['127.0.0.1'], allowedPorts: [port], inClusterExceptions: [] },
    authorization: { type: 'None' },
    tools: { allow: [['*']], trustReadOnlyHint: false, overrides: [] },
    limits: {
      maxConcurrency: 8,
      queueSize: 64,
      queueTimeoutMs: 10_000,
      connectTimeoutMs: 5_000,
      requestTimeoutMs: 30_000,
      streamReadTimeoutMs: 300_000,
      maxRequestBytes: 1_048_576,
      maxResponseBytes: 1_048_576,
      maxInputRounds: 10,
      maxRetries: 2,
      terminateOnClose: true,
    },
    cache: { defaultTtlMs: 3_600_000 },
    priority: 0,
    ...edit,
  };
}

export function sidecarConfig(edit: Partial<SidecarConfigBody> = {}): {
  readonly revision: string;
  readonly text: string;
} {
  return encodeSidecarConfig({
    version: 'v1alpha1',
    requires: [],
    binding: { namespace: 'agents', name: 'desk' },
    identity: { tenant: 'acme', user: { type: 'Static', id: 'ana@example.com' } },
    listeners: { agentPort: 7317 },
    servers: [],
    drain: { timeoutMs: 20_000 },
    telemetry: { logLevel: 'info' },
    ...edit,
  });
}

export async function writePlainConfig(directory: string, text: string): Promise<void> {
  const draft = join(directory, '.config.json.new');
  await writeFile(draft, text);
  await rename(draft, join(directory, 'config.json'));
}

/** What the kubelet does for a ConfigMap volume: a new dated directory, one rename, the old one removed. */
export class KubeletVolume {
  readonly directory: string;
  #generation = 0;

  constructor(directory: string) {
    this.directory = directory;
  }

  async swap(text: string): Promise<void> {
    const previous = `..2026_12_01_${this.#generation}`;
    this.#generation += 1;
    const next = `..2026_12_01_${this.#generation}`;
    await mkdir(join(this.directory, next));
    await writeFile(join(this.directory, next, 'config.json'), text);
    await symlink(next, join(this.directory, '..data_tmp'));
    await rename(join(this.directory, '..data_tmp'), join(this.directory, '..data'));
    if (this.#generation === 1)
      await symlink('..data/config.json', join(this.directory, 'config.json'));
    else await rm(join(this.directory, previous), { recursive: true });
  }
}
