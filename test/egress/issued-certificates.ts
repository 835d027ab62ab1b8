// TLS for any name: certificates of one test authority, issued when a name is first asked for.

import { createSecureContext } from 'node:tls';
import type { SecureContext } from 'node:tls';

import { createTestAuthority } from '#test/support/test-certificates.ts';

export class IssuedCertificates {
  readonly #authority = createTestAuthority('Fairlead egress corpus');
  readonly #contexts = new Map<string, SecureContext>();

  get caPem(): string {
    return this.#authority.certPem;
  }

  /** For a DNS name or an address. */
  contextFor(name: string): SecureContext {
    const known = this.#contexts.get(name);
    if (known !== undefined) return known;
    const { certPem, keyPem } = this.#authority.issue({ names: [name] });
    const context = createSecureContext({ cert: certPem, key: keyPem });
    this.#contexts.set(name, context);
    return context;
  }
}
