// Whole sidecars whose only way out is a fake proxy: what their configuration says of it, and what
// they tell on their probes.

import type { SidecarConfigBody } from '#core/config/sidecar-config.ts';
import type { TestAuthority } from '#test/support/test-certificates.ts';
import { sendHttp } from './agent-api-fixture.ts';
import type { Answer } from './agent-api-fixture.ts';
import type { FakeConnectProxy } from './fake-connect-proxy.ts';
import type { FakeMcpServer } from './fake-mcp-server.ts';
import type { SidecarFixture } from './sidecar-fixture.ts';

export interface ProxyEdit {
  readonly isTls?: boolean;
  readonly resolve?: 'Local' | 'ProxyOnly';
  readonly metadataName?: string;
}

/** The part of a configuration that names the proxy on this port. */
export function throughProxy(
  port: number,
  { isTls = false, resolve = 'Local', metadataName }: ProxyEdit = {},
): Partial<SidecarConfigBody> {
  return {
    requires: ['egress-proxy'],
    proxy: {
      mode: 'Connect',
      url: `${isTls ? 'https' : 'http'}://127.0.0.1:${String(port)}`,
      resolve,
      ...(metadataName === undefined ? {} : { metadataName }),
    },
  };
}

/** As a proxy's allowlist would have it. */
export function routesTo(...servers: readonly FakeMcpServer[]): Record<string, number> {
  return Object.fromEntries(servers.map(({ port }) => [`127.0.0.1:${String(port)}`, port]));
}

/** Tunnels that were asked for to this server. */
export function tunnelsTo(proxy: FakeConnectProxy, server: FakeMcpServer): number {
  return proxy.asked.filter((authority) => authority === `127.0.0.1:${String(server.port)}`).length;
}

export function probe({ sidecar }: SidecarFixture, path: '/livez' | '/readyz'): Promise<Answer> {
  return sendHttp(sidecar.healthPort ?? 0, { method: 'GET', path });
}

/** Files of a client certificate with this common name. */
export function clientFiles(
  authority: TestAuthority,
  name: string,
  caPem: string,
): Readonly<Record<'tls.crt' | 'tls.key' | 'ca.crt', string>> {
  const { certPem, keyPem } = authority.issue({ names: [name] });
  return { 'tls.crt': certPem, 'tls.key': keyPem, 'ca.crt': caPem };
}
