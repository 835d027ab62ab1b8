// Whom TLS trusts: the roots that this Node trusts by default (bundled ones, plus the system's and
// NODE_EXTRA_CA_CERTS when it is started so), and the certificates of one server's CA bundle.
// Certificates are always verified; there is no switch that turns it off.

import { X509Certificate } from 'node:crypto';
import { createSecureContext, getCACertificates } from 'node:tls';
import type { SecureContext } from 'node:tls';

import { EgressError } from './egress-error.ts';

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

// A memo, not state: a context holds trust and nothing of a connection, costs 20 ms and 1 MiB, and
// every partition of one server asks for the same one. Pools keep theirs alive; the memo does not.
const contexts = new Map<string, WeakRef<SecureContext>>();

/** Undefined without a bundle: Node then shares one root store between all connections. */
export function trustOf(caBundle: string | undefined): SecureContext | undefined {
  if (caBundle === undefined) return undefined;
  const known = contexts.get(caBundle)?.deref();
  if (known !== undefined) return known;
  const made = createSecureContext({
    minVersion: 'TLSv1.2',
    ca: [...getCACertificates('default'), ...certificatesOf(caBundle)],
  });
  for (const [bundle, context] of contexts) {
    if (context.deref() === undefined) contexts.delete(bundle);
  }
  contexts.set(caBundle, new WeakRef(made));
  return made;
}

/** Throws CA_BUNDLE_INVALID when one of them is none, or there is none. */
export function certificatesOf(caBundle: string): readonly string[] {
  const blocks = caBundle.match(PEM_CERTIFICATE) ?? [];
  if (blocks.length === 0 || !blocks.every(isCertificate)) {
    throw new EgressError('CA_BUNDLE_INVALID', { stage: 'connect', reason: 'ca-bundle' });
  }
  return blocks;
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}
