// Branded identifiers. A tenant can't be passed where a user is wanted: what the compiler
// refuses cannot become a cross-tenant leak. Each parser is the only place that brands.

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** The namespace's `fairlead.dev/tenant` label, else its name; divided by `/claim` for JWT users. */
export type TenantId = Branded<'TenantId'>;
export type UserId = Branded<'UserId'>;
/** `namespace/name` of an McpServer. */
export type ServerId = Branded<'ServerId'>;
/** A server's short name inside one binding; the prefix of its tools. */
export type Alias = Branded<'Alias'>;
/** Stable over token refreshes; see grant-id.ts. */
export type GrantId = Branded<'GrantId'>;
export type PartitionKey = Branded<'PartitionKey'>;

const NON_EMPTY = /^[^\u0000-\u001f\u007f]{1,512}$/u;

function checked(kind: string, text: string): string {
  if (!NON_EMPTY.test(text)) {
    throw new TypeError(`${kind} must be 1 to 512 characters without control characters`);
  }
  return text;
}

export function tenantId(text: string): TenantId {
  return checked('tenant', text) as TenantId;
}

export function userId(text: string): UserId {
  return checked('user', text) as UserId;
}

export function serverId(namespace: string, name: string): ServerId {
  return `${checked('namespace', namespace)}/${checked('server name', name)}` as ServerId;
}

export function aliasOf(text: string): Alias {
  return checked('alias', text) as Alias;
}
