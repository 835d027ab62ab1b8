// Cases about documents. What a tool or an answer names is read by the product's own list and call
// code and must never be asked for; what is too large, too slow, wrongly typed or encoded is
// refused by the product's own exchange and document reader.

import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';

import { z } from 'zod';

import { systemClock } from '#core/clock.ts';
import type { Clock } from '#core/clock.ts';
import { readJsonDocument } from '#core/egress/read-document.ts';

import { resolverOf } from './case-resolver.ts';
import type { CaseWorld } from './case-world.ts';
import { allowedUrl } from './connection-cases.ts';
import type { CaseGiven } from './corpus-file.ts';
import { openClient, verdictOf } from './guarded-exchange.ts';
import type { CannedAnswer } from './loopback-world.ts';
import { runNamedUrlCase } from './named-url-cases.ts';
import type { Verdict } from './observation.ts';
import { scaledClock } from './scaled-clock.ts';

const CHUNK_BYTES = 65_536;
/** A minute of the case is a second and a half of ours. */
const FAST = 40;
const DRIPS = 50;

const inputSchema = z.union([
  z.strictObject({ tool: z.record(z.string(), z.unknown()) }),
  z.strictObject({ content: z.array(z.unknown()) }),
  z.strictObject({ raw: z.string() }),
  z.strictObject({ contentType: z.string() }),
  z.strictObject({ chunkedBytes: z.number(), limit: z.number() }),
  z.strictObject({ contentLength: z.number(), limit: z.number() }),
  z.strictObject({
    encoding: z.literal('gzip'),
    wireBytes: z.number(),
    decodedBytes: z.number(),
    limit: z.number(),
  }),
  z.strictObject({ firstByteMs: z.number(), bodyMs: z.number(), limitMs: z.number() }),
]);

type DocumentInput = z.infer<typeof inputSchema>;

export function runDocumentCase(world: CaseWorld, given: CaseGiven): Promise<Verdict> {
  const input = inputSchema.parse(given.input);
  if ('tool' in input) return runNamedUrlCase(world, { tool: input.tool });
  if ('content' in input) return runNamedUrlCase(world, { content: input.content });
  return readDocument(world, given, input);
}

interface Plan {
  readonly answer: CannedAnswer;
  readonly clock: Clock;
  readonly limits: { readonly deadlineMs?: number; readonly maxBytes?: number };
}

async function readDocument(
  world: CaseWorld,
  given: CaseGiven,
  input: Exclude<DocumentInput, { tool: unknown } | { content: unknown }>,
): Promise<Verdict> {
  const { answer, clock, limits } = planOf(input);
  world.serve(() => answer);
  await using opened = openClient(world, { resolve: resolverOf(given.resolve), clock });
  const url = new URL('/.well-known/oauth-authorization-server', allowedUrl(world.policy));
  const headers = { accept: 'application/json' };
  const request = { kind: 'discovery', url, method: 'GET', headers } as const;
  const outcome = await opened.client.exchange(request, limits);
  if (outcome.kind !== 'response') return verdictOf(outcome, opened);
  const read = readJsonDocument(outcome);
  return read.kind === 'document'
    ? { expect: 'allow' }
    : { expect: 'deny', stage: 'document', reason: read.reason };
}

const METADATA = JSON.stringify({ issuer: 'https://auth.example.com' });

function planOf(input: Exclude<DocumentInput, { tool: unknown } | { content: unknown }>): Plan {
  const plain = { clock: systemClock, limits: {} };
  if ('raw' in input) return { ...plain, answer: answerWith({ body: input.raw }) };
  if ('contentType' in input)
    return { ...plain, answer: answerWith({ body: METADATA, type: input.contentType }) };
  if ('bodyMs' in input) return slowPlan(input);
  const limits = { maxBytes: input.limit };
  return { ...plain, limits, answer: answerWith(largeBody(input)) };
}

interface Body {
  readonly body: CannedAnswer['body'];
  readonly type?: string;
  readonly headers?: CannedAnswer['headers'];
}

function answerWith({ body, type = 'application/json', headers = [] }: Body): CannedAnswer {
  return { status: 200, headers: [['content-type', type], ...headers], body };
}

type LargeInput = Extract<DocumentInput, { limit: number }>;

function largeBody(input: LargeInput): Body {
  if ('encoding' in input)
    return {
      body: Readable.from(jsonOf(input.decodedBytes)).pipe(createGzip()),
      headers: [['content-encoding', input.encoding]],
    };
  if ('contentLength' in input)
    return {
      body: Readable.from(jsonOf(input.contentLength)),
      headers: [['content-length', String(input.contentLength)]],
    };
  return {
    body: Readable.from(chunked(jsonOf(input.chunkedBytes))),
    headers: [['transfer-encoding', 'chunked']],
  };
}

/** A JSON string of so many bytes. */
function* jsonOf(bytes: number): Generator<Buffer> {
  yield Buffer.from('"');
  for (let left = bytes - 2; left > 0; left -= CHUNK_BYTES)
    yield Buffer.alloc(Math.min(left, CHUNK_BYTES), 'a');
  yield Buffer.from('"');
}

function* chunked(parts: Iterable<Buffer>): Generator<Buffer> {
  for (const part of parts)
    yield Buffer.concat([
      Buffer.from(`${part.length.toString(16)}\r\n`),
      part,
      Buffer.from('\r\n'),
    ]);
  yield Buffer.from('0\r\n\r\n');
}

function slowPlan({
  firstByteMs,
  bodyMs,
  limitMs,
}: Extract<DocumentInput, { bodyMs: number }>): Plan {
  const clock = scaledClock(FAST);
  const drip = async function* (): AsyncGenerator<Buffer> {
    await clock.sleep(firstByteMs);
    const text = METADATA.padEnd(DRIPS);
    const step = Math.ceil(text.length / DRIPS);
    for (let at = 0; at < text.length; at += step) {
      yield Buffer.from(text.slice(at, at + step));
      await clock.sleep(bodyMs / DRIPS);
    }
  };
  return { clock, limits: { deadlineMs: limitMs }, answer: answerWith({ body: drip() }) };
}
