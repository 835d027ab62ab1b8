// The one function that makes partition keys. Credentials, pools, sockets, permits, sessions and
// caches are all found by this key, so a part that is missing here is a leak between users.
// The encoding is a JSON array: no separator that a tenant or user could contain.

import type { GrantId, PartitionKey, TenantId, UserId } from './ids.ts';

export interface PartitionIdentity {
  readonly tenant: TenantId;
  readonly user: UserId;
  readonly serverNamespace: string;
  readonly serverName: string;
  /** RFC 8707 resource, byte for byte as configured. */
  readonly resource: string;
  readonly grantId: GrantId;
}

const VERSION = 'v1';

/** Canonical JSON array `[version, tenant, user, server namespace, server name, resource, grant id]`. */
export function partitionKey(identity: PartitionIdentity): PartitionKey {
  const { tenant, user, serverNamespace, serverName, resource, grantId } = identity;
  const parts = [tenant, user, serverNamespace, serverName, resource, grantId];
  if (parts.some((part) => typeof part !== 'string' || part === '')) {
    throw new TypeError('every part of a partition key must be a non-empty string');
  }
  return JSON.stringify([VERSION, ...parts]) as PartitionKey;
}
