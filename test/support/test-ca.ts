// A certificate authority for one test: PEM files made by openssl in a directory of the caller's.

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface TestCa {
  readonly caPem: string;
  /** Paths of a certificate for these names, and of its key. */
  issue(name: string, hosts: readonly string[]): { readonly cert: string; readonly key: string };
}

export function makeTestCa(directory: string): TestCa {
  const at = (file: string): string => join(directory, file);
  const openssl = (...args: string[]): void =>
    void execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  openssl(
    'req',
    '-x509',
    ...newKey,
    '-days',
    '2',
    '-keyout',
    at('ca.key'),
    '-out',
    at('ca.crt'),
    '-subj',
    '/CN=test-ca',
  );
  return {
    caPem: readFileSync(at('ca.crt'), 'utf8'),
    issue(name, hosts) {
      const [cert, key, request, extensions] = [
        at(`${name}.crt`),
        at(`${name}.key`),
        at(`${name}.csr`),
        at(`${name}.ext`),
      ];
      writeFileSync(extensions, `subjectAltName=${hosts.map((host) => `DNS:${host}`).join(',')}\n`);
      openssl('req', ...newKey, '-keyout', key, '-out', request, '-subj', `/CN=${name}`);
      openssl(
        'x509',
        '-req',
        '-in',
        request,
        '-CA',
        at('ca.crt'),
        '-CAkey',
        at('ca.key'),
        '-CAcreateserial',
        '-days',
        '2',
        '-out',
        cert,
        '-extfile',
        extensions,
      );
      return { cert, key };
    },
  };
}
