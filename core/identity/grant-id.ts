// Names a grant: one person's consent for one server, as seen from one binding's namespace.
// Any change of what the grant was given for is a new grant, never a reused one; a token
// refresh is not a change.

import { createHash } from 'node:crypto';

import type { GrantId, TenantId, UserId } from './ids.ts';

export interface GrantSubject {
  readonly tenant: TenantId;
  readonly user: UserId;
  readonly serverNamespace: string;
  readonly serverName: string;
  /** Scheme, host and port of the MCP endpoint. */
  readonly endpointOrigin: string;
  /** RFC 8707 resource, byte for byte as configured. */
  readonly resource: string;
  /** The authorization server; the empty string when the server needs no authorization. */
  readonly issuer: string;
  readonly bindingNamespace: string;
}

/** 32 hex digits of SHA-256 over the canonical JSON array of the subject. */
export function grantId(subject: GrantSubject): GrantId {
  const parts = [
    'v1',
    subject.tenant,
    subject.user,
    subject.serverNamespace,
    subject.serverName,
    subject.endpointOrigin,
    subject.resource,
    subject.issuer,
    subject.bindingNamespace,
  ];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32) as GrantId;
}
