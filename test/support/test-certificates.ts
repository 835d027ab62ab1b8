// X.509 certificates for tests, made in the process with node:crypto (P-256, ECDSA with SHA-256),
// so that TLS tests need no other program. Only what TLS peers look at: names, validity, key
// usage by CA flag. RFC 5280.

import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { isIP } from 'node:net';

import { systemClock } from '#core/clock.ts';
import { ipv6Groups } from '#core/egress/ipv6-groups.ts';

export interface TestCertificate {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface CertificateOptions {
  /** DNS names and addresses for subjectAltName. */
  readonly names: readonly string[];
  /** Of the subject; the Kubernetes API server reads it as the client's group. */
  readonly organization?: string;
  readonly notBefore?: Date;
  readonly notAfter?: Date;
}

export interface TestAuthority extends TestCertificate {
  issue(options: CertificateOptions): TestCertificate;
}

const DAY_MS = 86_400_000;

/** A new certificate authority; `name` is its common name. */
export function createTestAuthority(name = 'Fairlead test CA'): TestAuthority {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const validity = validityOf({ names: [] });
  const der = certificate({
    issuer: name,
    subject: name,
    publicKey: keys.publicKey,
    signer: keys.privateKey,
    validity,
    isAuthority: true,
    names: [],
  });
  return {
    certPem: pem('CERTIFICATE', der),
    keyPem: pemOfKey(keys.privateKey),
    issue(options) {
      const leaf = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const leafDer = certificate({
        issuer: name,
        subject: options.names[0] ?? 'test',
        publicKey: leaf.publicKey,
        signer: keys.privateKey,
        validity: validityOf(options),
        isAuthority: false,
        names: options.names,
        ...(options.organization === undefined ? {} : { organization: options.organization }),
      });
      return { certPem: pem('CERTIFICATE', leafDer), keyPem: pemOfKey(leaf.privateKey) };
    },
  };
}

/** Signed by itself, not an authority. */
export function createSelfSigned(options: CertificateOptions): TestCertificate {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = options.names[0] ?? 'test';
  const der = certificate({
    issuer: name,
    subject: name,
    publicKey: keys.publicKey,
    signer: keys.privateKey,
    validity: validityOf(options),
    isAuthority: false,
    names: options.names,
  });
  return { certPem: pem('CERTIFICATE', der), keyPem: pemOfKey(keys.privateKey) };
}

interface CertificateParts {
  readonly issuer: string;
  readonly subject: string;
  readonly publicKey: KeyObject;
  readonly signer: KeyObject;
  readonly validity: Buffer;
  readonly isAuthority: boolean;
  readonly names: readonly string[];
  readonly organization?: string;
}

function certificate(parts: CertificateParts): Buffer {
  const algorithm = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  const spki = parts.publicKey.export({ type: 'spki', format: 'der' });
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, serial),
    algorithm,
    distinguishedName(parts.issuer),
    parts.validity,
    distinguishedName(parts.subject, parts.organization),
    spki,
    der(0xa3, sequence(...extensions(parts))),
  );
  const signature = sign('sha256', body, { key: parts.signer, dsaEncoding: 'der' });
  return sequence(body, algorithm, bitString(signature));
}

function extensions({ isAuthority, names, publicKey }: CertificateParts): Buffer[] {
  const keyId = createHash('sha1')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest();
  const list = [
    extension(
      [0x55, 0x1d, 0x13],
      isAuthority ? sequence(der(0x01, Buffer.from([0xff]))) : sequence(),
      true,
    ),
    extension([0x55, 0x1d, 0x0e], der(0x04, keyId)),
  ];
  if (names.length > 0)
    list.push(extension([0x55, 0x1d, 0x11], sequence(...names.map(alternativeName))));
  return list;
}

function extension(id: readonly number[], value: Buffer, isCritical = false): Buffer {
  const critical = isCritical ? [der(0x01, Buffer.from([0xff]))] : [];
  return sequence(oid(...id), ...critical, der(0x04, value));
}

function alternativeName(name: string): Buffer {
  if (isIP(name) === 4) return der(0x87, Buffer.from(name.split('.').map(Number)));
  const groups = ipv6Groups(name);
  if (groups !== undefined)
    return der(0x87, Buffer.from(groups.flatMap((group) => [group >> 8, group & 0xff])));
  return der(0x82, Buffer.from(name, 'ascii'));
}

function validityOf({ notBefore, notAfter }: CertificateOptions): Buffer {
  const now = systemClock.nowMs();
  return sequence(
    utcTime(notBefore ?? new Date(now - DAY_MS)),
    utcTime(notAfter ?? new Date(now + 30 * DAY_MS)),
  );
}

function utcTime(date: Date): Buffer {
  const digits = date.toISOString().replace(/[-:T]/g, '').slice(2, 14);
  return der(0x17, Buffer.from(`${digits}Z`, 'ascii'));
}

/** Attribute 2.5.4.3 is the common name, 2.5.4.10 the organization. */
function distinguishedName(name: string, organization?: string): Buffer {
  const attribute = (type: number, value: string): Buffer =>
    der(0x31, sequence(oid(0x55, 0x04, type), der(0x0c, Buffer.from(value, 'utf8'))));
  const groups = organization === undefined ? [] : [attribute(0x0a, organization)];
  return sequence(...groups, attribute(0x03, name));
}

function oid(...bytes: readonly number[]): Buffer {
  return der(0x06, Buffer.from(bytes));
}

function bitString(content: Buffer): Buffer {
  return der(0x03, Buffer.concat([Buffer.from([0]), content]));
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function der(tag: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([tag]), derLength(content.length), content]);
}

function derLength(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  if (length < 0x100) return Buffer.from([0x81, length]);
  return Buffer.from([0x82, length >> 8, length & 0xff]);
}

function pem(label: string, content: Buffer): string {
  const lines = content.toString('base64').match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}

function pemOfKey(key: KeyObject): string {
  const text = key.export({ type: 'pkcs8', format: 'pem' });
  return typeof text === 'string' ? text : text.toString('utf8');
}
