// What one McpServer is worth, judged alone: is its spec one that we act on, and does the CA bundle
// that it names exist. Pure; both the operator and offline commands ask this.

import { X509Certificate } from 'node:crypto';

import { conditionReason } from '#core/errors.ts';
import type { McpServer, ObjectVerdict } from '#crds/validate-object.ts';
import { type Verdict, no, yes } from '#operator/reconcile/conditions.ts';

import { publicSuffixIssues } from './judge-host-rules.ts';

/** Data of a ConfigMap; undefined when it does not exist. */
export type ConfigMapData = Readonly<Record<string, string>> | undefined;

export interface JudgedServer {
  readonly accepted: Verdict;
  readonly resolvedRefs: Verdict;
  /** Undefined when the spec is not valid. */
  readonly server: McpServer | undefined;
  /** Present when both are True. */
  readonly usable:
    | { readonly server: McpServer; readonly caBundle: string | undefined }
    | undefined;
}

const MAX_MESSAGE = 1_024;

export function judgeServer(verdict: ObjectVerdict, caConfigMap: ConfigMapData): JudgedServer {
  const accepted = judgeSpec(verdict);
  if (verdict.kind !== 'ok' || verdict.object.kind !== 'McpServer') {
    return {
      accepted,
      resolvedRefs: { status: 'Unknown', reason: 'Pending', message: 'The spec is not valid.' },
      server: undefined,
      usable: undefined,
    };
  }
  const server = verdict.object;
  const bundle = judgeCaBundle(server, caConfigMap);
  const isUsable = accepted.status === 'True' && bundle.verdict.status === 'True';
  return {
    accepted,
    resolvedRefs: bundle.verdict,
    server,
    usable: isUsable ? { server, caBundle: bundle.pem } : undefined,
  };
}

/** Accepted of either kind: valid, and nothing in it that this version does not act on. */
export function judgeSpec(verdict: ObjectVerdict): Verdict {
  if (verdict.kind === 'invalid') return no('Invalid', listIssues(verdict.issues));
  if (verdict.unsupported.length > 0) return no('NotSupported', listIssues(verdict.unsupported));
  const tooWide = verdict.object.kind === 'McpServer' ? publicSuffixIssues(verdict.object) : [];
  if (tooWide.length > 0) return no(conditionReason('HOST_RULE_TOO_WIDE'), listIssues(tooWide));
  return yes('Accepted', 'The spec is valid.');
}

function listIssues(
  issues: readonly { readonly path: string; readonly message: string }[],
): string {
  const text = issues
    .map(({ path, message }) => (path === '' ? message : `${path}: ${message}`))
    .join('; ');
  return text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE - 3)}...` : text;
}

interface JudgedBundle {
  readonly verdict: Verdict;
  readonly pem: string | undefined;
}

function judgeCaBundle(server: McpServer, data: ConfigMapData): JudgedBundle {
  const reference = server.spec.egress.caBundleRef;
  if (reference === undefined)
    return { verdict: yes('ResolvedRefs', 'There is nothing to resolve.'), pem: undefined };
  const { name, key } = reference;
  if (data === undefined)
    return invalidBundle(`There is no ConfigMap ${JSON.stringify(name)} in this namespace.`);
  const pem = data[key];
  if (pem === undefined)
    return invalidBundle(`ConfigMap ${JSON.stringify(name)} has no key ${JSON.stringify(key)}.`);
  const fault = findPemFault(pem);
  if (fault !== undefined)
    return invalidBundle(`ConfigMap ${JSON.stringify(name)}, key ${JSON.stringify(key)}: ${fault}`);
  return { verdict: yes('ResolvedRefs', 'The CA bundle exists.'), pem };
}

function invalidBundle(message: string): JudgedBundle {
  return { verdict: no(conditionReason('CA_BUNDLE_INVALID'), message), pem: undefined };
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;
const MAX_PEM_CHARACTERS = 524_288;

function findPemFault(pem: string): string | undefined {
  if (pem.length > MAX_PEM_CHARACTERS)
    return `it has over ${String(MAX_PEM_CHARACTERS)} characters.`;
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(pem))
    return 'it holds a private key, which must never be in a ConfigMap.';
  const certificates = pem.match(CERTIFICATE);
  if (certificates === null) return 'it holds no PEM certificate.';
  const broken = certificates.findIndex((text) => !isCertificate(text));
  return broken === -1 ? undefined : `certificate ${String(broken + 1)} cannot be read.`;
}

function isCertificate(text: string): boolean {
  try {
    return new X509Certificate(text).raw.length > 0;
  } catch {
    return false;
  }
}
