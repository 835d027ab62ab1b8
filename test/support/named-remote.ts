// One loopback TLS server that stands behind public-looking names, for tests of requests that may
// lead from host to host: it records each request as `METHOD https://host/path`, and the sockets
// that are opened for any judged address lead to it.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';

import { systemClock } from '#core/clock.ts';
import type { EgressDecision, EgressPolicy } from '#core/egress/egress-policy.ts';
import { createGuardedClient } from '#core/egress/guarded-client.ts';
import type { GuardedClient } from '#core/egress/guarded-client.ts';

import { authority, resolvesTo } from './egress-pool.ts';
import { openFakeRemote } from './fake-remote.ts';

const NAMES = ['mcp.example.com', 'auth.example.com', 'evil.org'];
const PUBLIC_ADDRESS = '93.184.215.14';
const certificate = authority.issue({ names: NAMES });

export const NAMED_POLICY: EgressPolicy = {
  allowedHosts: ['mcp.example.com', 'auth.example.com'],
  allowedPorts: [443],
  inClusterExceptions: [],
  development: false,
};

export interface NamedRemote extends AsyncDisposable {
  readonly client: GuardedClient;
  /** `GET https://host/path`, in order of arrival. */
  readonly seen: readonly string[];
  /** Header names of each request. */
  readonly headers: readonly (readonly string[])[];
  readonly decisions: readonly EgressDecision[];
  readonly openConnections: number;
}

export async function openNamedRemote(
  answer: (request: IncomingMessage, response: ServerResponse, url: string) => void,
  policy: EgressPolicy = NAMED_POLICY,
): Promise<NamedRemote> {
  const seen: string[] = [];
  const headers: string[][] = [];
  const decisions: EgressDecision[] = [];
  const remote = await openFakeRemote({
    certificate,
    answer: (request, response) => {
      const url = `https://${request.headers.host ?? ''}${request.url ?? ''}`;
      seen.push(`${request.method ?? ''} ${url}`);
      headers.push(Object.keys(request.headers));
      answer(request, response, url);
    },
  });
  const client = createGuardedClient({
    policy,
    caBundle: authority.certPem,
    clock: systemClock,
    connectTimeoutMs: 5_000,
    onDecision: (decision) => decisions.push(decision),
    resolve: resolvesTo(PUBLIC_ADDRESS),
    openSocket: ({ address }) => {
      const socket = connect({ host: '127.0.0.1', port: remote.port });
      // The peer that the guard sees is the address that it chose.
      Object.defineProperty(socket, 'remoteAddress', { value: address });
      return socket;
    },
  });
  return {
    client,
    seen,
    headers,
    decisions,
    get openConnections() {
      return remote.openConnections;
    },
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]();
      await remote[Symbol.asyncDispose]();
    },
  };
}
