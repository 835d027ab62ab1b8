// Reads a config file's text as a verdict: this configuration, or why not. Pure. The same checks
// run at the API server and offline; here they run again, because here it is what counts (R7).

import type { ConfigIssue, ConfigRules, SidecarConfig } from '#core/config/sidecar-config.ts';
import { checkSidecarConfig } from '#core/config/sidecar-config.ts';
import type { ErrorCode } from '#core/errors.ts';

export interface ConfigRejection {
  readonly code: Extract<ErrorCode, 'CONFIG_INVALID' | 'CONFIG_UNSUPPORTED' | 'CONFIG_UNREADABLE'>;
  readonly issues: readonly ConfigIssue[];
}

export type JudgedConfig =
  | { readonly kind: 'accepted'; readonly config: SidecarConfig }
  | {
      readonly kind: 'rejected';
      readonly rejection: ConfigRejection;
      /** As the file claims it, when it does. */
      readonly revision: string | undefined;
      /** The text is cut off, or does not match its own revision: it may be in the middle of a write. */
      readonly mayBeHalfWritten: boolean;
    };

const MAX_ISSUES = 20;

export function judgeConfig(text: string, rules: ConfigRules): JudgedConfig {
  let input: unknown;
  try {
    input = JSON.parse(text);
  } catch {
    const message = text.trim() === '' ? 'is empty' : 'is not valid JSON';
    return reject({ code: 'CONFIG_INVALID', issues: [{ path: '', message }] }, undefined, true);
  }
  const revision = claimedRevision(input);
  const verdict = checkSidecarConfig(input, rules);
  switch (verdict.kind) {
    case 'ok':
      return { kind: 'accepted', config: verdict.config };
    case 'unsupported': {
      const issues = verdict.features.map((feature) => ({
        path: 'requires',
        message: `needs the feature ${JSON.stringify(feature)}`,
      }));
      return reject(
        { code: 'CONFIG_UNSUPPORTED', issues: issues.slice(0, MAX_ISSUES) },
        revision,
        false,
      );
    }
    case 'invalid': {
      const issues = verdict.issues.slice(0, MAX_ISSUES);
      return reject(
        { code: 'CONFIG_INVALID', issues },
        revision,
        issues.some((issue) => issue.path === 'revision'),
      );
    }
    default:
      return verdict satisfies never;
  }
}

function reject(
  rejection: ConfigRejection,
  revision: string | undefined,
  mayBeHalfWritten: boolean,
): JudgedConfig {
  return { kind: 'rejected', rejection, revision, mayBeHalfWritten };
}

function claimedRevision(input: unknown): string | undefined {
  const revision =
    typeof input === 'object' && input !== null && 'revision' in input ? input.revision : undefined;
  return typeof revision === 'string' && /^[0-9a-f]{64}$/.test(revision) ? revision : undefined;
}
