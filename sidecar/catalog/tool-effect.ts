// What a call of a tool may do, which decides whether it may ever be repeated. The platform team's
// word counts; a server's hints can only tighten, unless the team trusts `readOnlyHint`.

import type { ServerConfig } from '#core/config/sidecar-config.ts';

export type ToolEffect = 'ReadOnly' | 'Write' | 'Destructive';

export function decideToolEffect(
  tools: ServerConfig['tools'],
  name: string,
  definition: Readonly<Record<string, unknown>>,
): ToolEffect {
  const override = tools.overrides.find((candidate) => candidate.name === name)?.effect;
  const hints = annotationsOf(definition);
  if (
    override === 'ReadOnly' ||
    (override === undefined && tools.trustReadOnlyHint && hints.readOnlyHint === true)
  ) {
    // A server that calls its own tool destructive is believed, whatever else was said of it by hint.
    return override === undefined && hints.destructiveHint === true ? 'Write' : 'ReadOnly';
  }
  return override ?? 'Write';
}

function annotationsOf(
  definition: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const annotations = definition['annotations'];
  return annotations !== null && typeof annotations === 'object'
    ? (annotations as Readonly<Record<string, unknown>>)
    : {};
}
