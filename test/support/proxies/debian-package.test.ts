import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseNewPackages } from './debian-package.ts';

test('of a simulated installation only the packages that are not there yet are wanted', () => {
  const simulation = `NOTE: This is only a simulation!
Inst perl-base [5.36.0-7+deb12u2] (5.36.0-7+deb12u4 Debian-Security:12 [amd64])
Inst libecap3 (1.0.1-3.4 Debian:12.15/oldstable [amd64])
Inst squid-openssl (5.7-2+deb12u6 Debian-Security:12/oldstable-security [amd64])
Conf squid-openssl (5.7-2+deb12u6 Debian-Security:12/oldstable-security [amd64])
`;
  assert.deepEqual(parseNewPackages(simulation), ['libecap3', 'squid-openssl']);
});
