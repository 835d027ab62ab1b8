// Whom TLS trusts: the roots that this Node trusts by default (bundled ones, plus the system's and
// NODE_EXTRA_CA_CERTS when it is started so), and the certificates of one server's CA bundle.
// Certificates are always verified; there is no switch that turns it off.

import { X509Certificate } from 'node:crypto';
import { createSecureContext, getCACertificates } from 'node:tls';
import type { SecureContext } from 'node:tls';

import { EgressError } from './egress-error.ts';

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** Undefined without a bundle: Node then shares one root store between all connections. */
export function createTrust(caBundle: string | undefined): SecureContext | undefined {
  if (caBundle === undefined) return undefined;
  const blocks = caBundle.match(PEM_CERTIFICATE) ?? [];
  if (blocks.length === 0 || !blocks.every(isCertificate)) {
    throw new EgressError('CA_BUNDLE_INVALID', { stage: 'connect', reason: 'ca-bundle' });
  }
  return createSecureContext({ ca: [...getCACertificates('default'), ...blocks] });
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}
