// The one table of objects that must be refused. Each row changes one thing in a good object and
// names the field that must be blamed; the API server, offline validation and, with the rendered
// twin of the fault, the sidecar's own load run through it and must agree.

import { BAD_AUTHORIZATIONS } from '#test/support/bad-objects/authorizations.ts';
import type { BadObject } from '#test/support/bad-objects/bad-object.ts';
import { BAD_BINDINGS } from '#test/support/bad-objects/bindings.ts';
import { BAD_EGRESS } from '#test/support/bad-objects/egress.ts';
import { BAD_LIMITS } from '#test/support/bad-objects/limits.ts';
import { BAD_SERVERS } from '#test/support/bad-objects/servers.ts';
import { BAD_URLS } from '#test/support/bad-objects/urls.ts';
import { editValue } from './edit-value.ts';
import { GOOD_BINDING, GOOD_OAUTH_SERVER, GOOD_SERVER } from './good-objects.ts';

export type { BadObject } from '#test/support/bad-objects/bad-object.ts';

export const BAD_OBJECTS: readonly BadObject[] = [
  ...BAD_SERVERS,
  ...BAD_EGRESS,
  ...BAD_URLS,
  ...BAD_LIMITS,
  ...BAD_AUTHORIZATIONS,
  ...BAD_BINDINGS,
];

const GOOD = {
  server: GOOD_SERVER,
  'oauth-server': GOOD_OAUTH_SERVER,
  binding: GOOD_BINDING,
} as const;

export function badObject(row: BadObject): unknown {
  return editValue(GOOD[row.on], row.change);
}
