// Addresses in every spelling, against a table and a reader of this test's own (BigInt, RFC 4291):
// the verdict depends on the bits, whatever carries them and however they are written.

import assert from 'node:assert/strict';
import { isIPv6 } from 'node:net';
import { suite, test } from 'node:test';

import fc from 'fast-check';

import { classifyAddress } from '#core/egress/classify-address.ts';
import { decideAddress, decideUrl } from '#core/egress/decide-egress.ts';
import type { EgressPolicy } from '#core/egress/egress-policy.ts';
import { hostRuleFault } from '#core/egress/host-rule.ts';
import { readJsonDocument } from '#core/egress/read-document.ts';

const RUNS = 2_000;
const open: EgressPolicy = {
  allowedHosts: ['*'],
  allowedPorts: [443],
  allowIpLiterals: true,
  inClusterExceptions: [],
  development: false,
};

/** IANA's special-purpose registries, and what else is never a server: first address, prefix length. */
const SPECIAL_V4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
];
/** Within 2000::/3, outside of which everything is special. */
const SPECIAL_V6: readonly (readonly [bigint, number])[] = [
  [0x2001n << 112n, 23],
  [0x2001_0db8n << 96n, 32],
  [0x2002n << 112n, 16],
  [0x2620_004f_8000n << 80n, 48],
  [0x3fffn << 112n, 20],
];

const valueOfV4 = (text: string): number =>
  text.split('.').reduce((value, part) => value * 256 + Number(part), 0);
const dotted = (value: number): string =>
  [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.');

function isSpecialV4(value: number): boolean {
  return SPECIAL_V4.some(([first, length]) => {
    const size = 2 ** (32 - length);
    return Math.floor(value / size) === Math.floor(valueOfV4(first) / size);
  });
}

function isSpecialV6(value: bigint): boolean {
  if (value >> 32n === 0xffffn) return isSpecialV4(Number(value & 0xffff_ffffn));
  if (value >> 125n !== 1n) return true;
  const isListed = SPECIAL_V6.some(([first, length]) => {
    const shift = 128n - BigInt(length);
    return value >> shift === first >> shift;
  });
  // ISATAP, with and without the universal bit.
  const middle = (value >> 32n) & 0xffff_ffffn;
  return isListed || middle === 0x5efen || middle === 0x0200_5efen;
}

const groupsOf = (value: bigint): string[] =>
  Array.from({ length: 8 }, (_, index) =>
    ((value >> BigInt(112 - 16 * index)) & 0xffffn).toString(16),
  );

/** Every way in which RFC 4291 section 2.2 lets one write it. */
function spellingsOfV6(value: bigint): string[] {
  const groups = groupsOf(value);
  const low = Number(value & 0xffff_ffffn);
  const found = [
    groups.join(':'),
    groups.map((group) => group.padStart(4, '0')).join(':'),
    groups.join(':').toUpperCase(),
    `${groups.slice(0, 6).join(':')}:${dotted(low)}`,
  ];
  for (let start = 0; start < 8; start += 1)
    for (let end = start + 1; end <= 8 && groups[end - 1] === '0'; end += 1)
      found.push(`${groups.slice(0, start).join(':')}::${groups.slice(end).join(':')}`);
  return found;
}

/** inet_aton's ways to write it, which the WHATWG parser takes in a URL. */
function urlSpellingsOfV4(value: number): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = dotted(value).split('.').map(Number);
  const octal = (part: number): string => `0${part.toString(8)}`;
  const hex = (part: number): string => `0x${part.toString(16)}`;
  const wide = (text: string): string =>
    text.replaceAll(/[0-9]/g, (digit) => String.fromCharCode(0xff10 + Number(digit)));
  const text = dotted(value);
  return [
    text,
    String(value),
    hex(value),
    octal(value),
    [a, b, c * 256 + d].join('.'),
    [a, (b * 256 + c) * 256 + d].join('.'),
    [a, b, c, d].map(octal).join('.'),
    [a, b, c, d].map(hex).join('.').toUpperCase(),
    [octal(a), hex(b), c, d].join('.'),
    wide(text),
    text.replaceAll('.', '\u3002'),
    text.replaceAll(/[0-9]/g, (digit) => `%3${digit}`),
    `${text}\u00ad`,
  ];
}

const v4 = fc.oneof(
  fc.nat({ max: 0xffff_ffff }),
  fc.constantFrom(...SPECIAL_V4).chain(([first, length]) =>
    fc
      .tuple(fc.nat({ max: 2 ** (32 - length) - 1 }), fc.constantFrom(0, 0, -1, 1))
      // Beside the range too: before its first and after its last address.
      .map(([offset, beside]) => {
        const base = valueOfV4(first);
        const at = beside === 0 ? base + offset : beside < 0 ? base - 1 : base + 2 ** (32 - length);
        return Math.min(Math.max(at, 0), 0xffff_ffff);
      }),
  ),
);

function isAllowed(address: string, policy: EgressPolicy = open): boolean {
  const question = { host: 'name.example.com', port: 443, address, stage: 'resolve' } as const;
  return decideAddress(policy, question).kind === 'allow';
}

function isLiteralAllowed(host: string, policy: EgressPolicy = open): boolean {
  const url = URL.parse(`https://${host}/`);
  assert.ok(url !== null, host);
  return decideUrl(policy, url).kind === 'allow';
}

suite('addresses in every spelling', () => {
  test('IPv4: as an answer, mapped, and in a URL, the bits decide (R13)', () => {
    fc.assert(
      fc.property(v4, (value) => {
        const expected = !isSpecialV4(value);
        const text = dotted(value);
        assert.equal(isAllowed(text), expected, text);
        const mapped = spellingsOfV6((0xffffn << 32n) | BigInt(value));
        for (const spelling of mapped) {
          assert.equal(isAllowed(spelling), expected, spelling);
          assert.equal(isLiteralAllowed(`[${spelling}]`), expected, spelling);
        }
        for (const spelling of urlSpellingsOfV4(value))
          assert.equal(isLiteralAllowed(spelling), expected, spelling);
      }),
      { numRuns: RUNS },
    );
  });

  test('IPv6: all spellings of the same bits are one address (R13)', () => {
    const near = fc
      .tuple(fc.constantFrom(...SPECIAL_V6), fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }))
      .map(([[first, length], rest]) => first | (rest & ((1n << (128n - BigInt(length))) - 1n)));
    const sparse = fc
      .array(fc.constantFrom(0n, 0n, 0n, 1n, 0x5efen, 0x200n, 0xffffn, 0x2001n), {
        minLength: 8,
        maxLength: 8,
      })
      .map((groups) => groups.reduce<bigint>((value, group) => (value << 16n) | group, 0n));
    const any = fc.bigInt({ min: 0n, max: (1n << 128n) - 1n });
    const unicast = any.map((value) => (value & ((1n << 125n) - 1n)) | (1n << 125n));
    fc.assert(
      fc.property(fc.oneof(near, sparse, any, unicast), (value) => {
        const expected = !isSpecialV6(value);
        for (const spelling of spellingsOfV6(value)) {
          assert.ok(isIPv6(spelling), spelling);
          assert.equal(isAllowed(spelling), expected, spelling);
          assert.equal(isLiteralAllowed(`[${spelling}]`), expected, spelling);
        }
      }),
      { numRuns: RUNS },
    );
  });

  const carriers: readonly (readonly [string, (ipv4: bigint) => bigint])[] = [
    ['IPv4-compatible', (ipv4) => ipv4],
    ['SIIT', (ipv4) => (0xffffn << 48n) | ipv4],
    ['NAT64', (ipv4) => (0x0064_ff9bn << 96n) | ipv4],
    ['NAT64 local use', (ipv4) => (0x0064_ff9b_0001n << 80n) | ipv4],
    ['6to4', (ipv4) => (0x2002n << 112n) | (ipv4 << 80n) | 1n],
    ['Teredo server', (ipv4) => (0x2001n << 112n) | (ipv4 << 64n) | 1n],
    ['Teredo client', (ipv4) => (0x2001n << 112n) | (ipv4 ^ 0xffff_ffffn)],
    ['ISATAP', (ipv4) => (0x2001_4860n << 96n) | (0x5efen << 32n) | ipv4],
    ['ISATAP, universal', (ipv4) => (0x2001_4860n << 96n) | (0x0200_5efen << 32n) | ipv4],
  ];
  for (const [name, carry] of carriers) {
    test(`${name}: an address that carries another is refused, whatever it carries (R13)`, () => {
      fc.assert(
        fc.property(v4, (value) => {
          for (const spelling of spellingsOfV6(carry(BigInt(value))))
            assert.ok(!isAllowed(spelling) && !isLiteralAllowed(`[${spelling}]`), spelling);
        }),
        { numRuns: RUNS / 10 },
      );
    });
  }

  /** RFC 6052 section 2.2: where the four bytes are, around the reserved byte 8. */
  const places: readonly (readonly [number, readonly number[]])[] = [
    [32, [4, 5, 6, 7]],
    [40, [5, 6, 7, 9]],
    [48, [6, 7, 9, 10]],
    [56, [7, 9, 10, 11]],
    [64, [9, 10, 11, 12]],
    [96, [12, 13, 14, 15]],
  ];
  for (const [length, at] of places) {
    test(`a declared NAT64 prefix of ${length} bits: the embedded address decides (R13)`, () => {
      const prefix = [0x2a, 0x01, 0x04, 0xf8, 0xc0, 0x10, 0xd5, 0x6e, 0, 0, 0, 0];
      fc.assert(
        fc.property(v4, fc.constantFrom(0, 0, 1, 0xff), (value, reserved) => {
          const bytes = Array.from({ length: 16 }, (_, index) =>
            index < length / 8 ? (prefix[index] ?? 0) : 0,
          );
          const network = spellingsOfV6(valueOfBytes(bytes))[0] ?? '';
          const policy = { ...open, nat64Prefixes: [`${network}/${length}`] };
          for (const [index, byte] of at.entries())
            bytes[byte] = (value >>> (24 - 8 * index)) & 255;
          if (length < 96) bytes[8] = reserved;
          const isWellFormed = length === 96 || reserved === 0;
          for (const spelling of spellingsOfV6(valueOfBytes(bytes)))
            assert.equal(
              isAllowed(spelling, policy),
              isWellFormed && !isSpecialV4(value),
              spelling,
            );
        }),
        { numRuns: RUNS / 10 },
      );
    });
  }

  test('a zone, a port, blanks or brackets make no address of any (R13)', () => {
    const edit = fc.constantFrom(
      ...[(text: string) => `${text}%eth0`, (text: string) => `[${text}]`],
      ...[
        (text: string) => ` ${text}`,
        (text: string) => `${text}\n`,
        (text: string) => `${text}:80`,
      ],
      ...[
        (text: string) => `${text}/32`,
        (text: string) => `${text}\0`,
        (text: string) => `0${text}`,
      ],
    );
    fc.assert(
      fc.property(v4, edit, (value, change) => {
        assert.ok(!isAllowed(change(dotted(value))), change(dotted(value)));
        const mapped = `::ffff:${dotted(value)}`;
        const text = change(mapped);
        // One more zero, or a group behind, is another good spelling.
        if (!isIPv6(text) || text.includes('%')) assert.ok(!isAllowed(text), text);
      }),
      { numRuns: RUNS },
    );
  });
});

function valueOfBytes(bytes: readonly number[]): bigint {
  return bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

test('random text and random bytes get a verdict, never an exception (R13)', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 60 }),
    fc.string({ unit: fc.constantFrom(...'0123456789abcdefx:.%[]/'.split('')), maxLength: 50 }),
  );
  fc.assert(
    fc.property(text, (value) => {
      classifyAddress(value);
      isAllowed(value, { ...open, nat64Prefixes: ['64:ff9b::/96', value, '::/0'] });
      const url = URL.parse(`https://${value}`);
      if (url !== null) decideUrl(open, url);
      for (const place of ['allowed-host', 'exception'] as const)
        hostRuleFault(value, { development: true, place, exceptionHosts: [value] });
    }),
    { numRuns: RUNS * 5 },
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.jsonValue(), (bytes, json) => {
      const headers = { 'content-type': 'application/json' };
      readJsonDocument({ headers, body: bytes });
      const damaged = Buffer.from(JSON.stringify(json));
      damaged.set(bytes.subarray(0, Math.max(0, damaged.length - 3)), 3 % damaged.length);
      readJsonDocument({ headers, body: damaged });
    }),
    { numRuns: RUNS },
  );
});
