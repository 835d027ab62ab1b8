// What a row of the table of bad objects is made of.

import type { Edits } from '#test/support/edit-value.ts';

export interface BrokenConfig {
  readonly config: Edits;
  readonly path: string;
}

export interface BadObject {
  readonly title: string;
  readonly on: 'server' | 'oauth-server' | 'binding';
  readonly change: Edits;
  /** The field to blame. */
  readonly path: string;
  /** The same fault in a rendered config, or why a rendered config cannot have it. */
  readonly sidecar: BrokenConfig | { readonly none: string };
  /** Line of the requirements that the row proves. */
  readonly proves: `R${number}`;
  /** The API server refuses it while decoding (400) and names the path in its message only. */
  readonly isUnknownField?: true;
}

export const NONE = {
  unknown: {
    none: 'the sidecar ignores fields that it does not know, so that a newer operator serves it',
  },
  repeated: { none: 'an entry that is there twice changes nothing for the sidecar' },
  authorization: { none: 'a server with this authorization is not rendered' },
  reference: { none: 'references are resolved before rendering' },
  metadata: { none: 'names come from the API server, which has checked them' },
  namespaces: { none: 'which namespaces may use a server is decided before rendering' },
  workload: { none: 'which pods a binding is for is decided before the sidecar starts' },
  duration: { none: 'durations are rendered as numbers' },
} as const satisfies Record<string, { readonly none: string }>;

/** `[title, change, field to blame, the rendered twin]`. */
export type Row = readonly [
  title: string,
  change: Edits,
  path: string,
  sidecar: BadObject['sidecar'],
];

export function rowsOn(
  on: BadObject['on'],
  proves: BadObject['proves'],
  rows: readonly Row[],
): readonly BadObject[] {
  return rows.map(([title, change, path, sidecar]) => ({
    title,
    on,
    change,
    path,
    sidecar,
    proves,
  }));
}

/** The same fault in the first server of the rendered config. */
export function twin(field: string, value: unknown, blamed: string = field): BrokenConfig {
  return { config: { [`servers[0].${field}`]: value }, path: `servers[0].${blamed}` };
}
