// Names the caller. Tenant and user come from the configuration alone, never from the request; one
// binding without `agents` has one agent. What callers claim in headers stops here and goes no
// further, neither to the relay nor to a remote server (R8, R23).

import type { IncomingHttpHeaders } from 'node:http';

import type { SidecarConfig } from '#core/config/sidecar-config.ts';
import { tenantId, userId } from '#core/identity/ids.ts';

import type { Principal } from '#sidecar/agent-api/exchange.ts';

const DEFAULT_AGENT = 'default';
const CALLER_HEADERS = [
  'authorization',
  'x-fairlead-agent',
  'proxy-authorization',
  'cookie',
] as const;

/** One object per accepted configuration: what is derived from it can be remembered by identity. */
export function staticPrincipal(identity: SidecarConfig['identity']): Principal {
  return {
    tenant: tenantId(identity.tenant),
    user: userId(identity.user.id),
    agent: DEFAULT_AGENT,
  };
}

export function stripCallerHeaders(headers: IncomingHttpHeaders): void {
  for (const name of CALLER_HEADERS) {
    if (headers[name] !== undefined) delete headers[name];
  }
}
