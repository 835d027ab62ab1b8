// The one binding that a command is about: the named one, or the only one there is. Pure.

import type { PlannedBinding } from './plan-directory.ts';

export type BindingChoice =
  | { readonly kind: 'ok'; readonly binding: PlannedBinding }
  | { readonly kind: 'none' }
  /** None was named and there are several, or the named one is not there; says which there are. */
  | { readonly kind: 'unclear'; readonly message: string };

export interface BindingWish {
  /** `namespace/name`. */
  readonly wanted: string | undefined;
  /** Where the bindings are from, as the message names it. */
  readonly source: string;
}

export function pickBinding(
  bindings: readonly PlannedBinding[],
  { wanted, source }: BindingWish,
): BindingChoice {
  const names = bindings.map(({ id }) => id);
  const [only] = bindings;
  if (only === undefined) return { kind: 'none' };
  if (wanted === undefined) {
    if (bindings.length === 1) return { kind: 'ok', binding: only };
    const message = `${source} has ${String(bindings.length)} McpBindings. Choose one: --binding ${names.join(' | ')}`;
    return { kind: 'unclear', message };
  }
  const binding = bindings.find(({ id }) => id === wanted);
  if (binding !== undefined) return { kind: 'ok', binding };
  const message = `${source} has no McpBinding ${JSON.stringify(wanted)}. It has: ${names.join(', ')}`;
  return { kind: 'unclear', message };
}
