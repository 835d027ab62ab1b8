// GETs to our own programs on loopback: readiness of local servers, the sidecar's status page.
// Goes through the egress guard like everything else, under a policy for that one address.

import { createGuardedPool } from '#core/egress/guarded-pool.ts';

const TIMEOUT_MS = 2_000;
const MAX_BYTES = 16 * 1024 * 1024;

export interface LocalAnswer {
  readonly status: number;
  readonly text: string;
}

/** Undefined when nothing answers there. Only plain http on a loopback host is asked. */
export async function getLocal(url: string): Promise<LocalAnswer | undefined> {
  const { origin, hostname, port, pathname, search } = new URL(url);
  await using pool = createGuardedPool({
    origin,
    policy: {
      allowedHosts: [hostname],
      allowedPorts: [Number(port)],
      inClusterExceptions: [],
      development: true,
    },
    connections: 1,
    keepAliveMs: 1,
    connectTimeoutMs: TIMEOUT_MS,
    headersTimeoutMs: TIMEOUT_MS,
    bodyTimeoutMs: TIMEOUT_MS,
  });
  try {
    const { statusCode, body } = await pool.request({
      method: 'GET',
      path: `${pathname}${search}`,
      headers: { accept: 'application/json' },
    });
    return { status: statusCode, text: await readLimited(body) };
  } catch {
    return undefined;
  }
}

async function readLimited(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new RangeError('the answer is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
