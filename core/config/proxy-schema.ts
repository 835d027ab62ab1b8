// How the sidecar reaches servers: directly, or through one egress proxy and by no other way. An
// older sidecar must not overlook the latter, so the configuration names `egress-proxy` in
// `requires` with it. No credential is in here: the client's certificate comes from a directory.

import { z } from 'zod';

import { parseProxyUrl } from '#core/egress/proxy-policy.ts';

const LABEL = '[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?';
const HOST_NAME = new RegExp(`^${LABEL}([.]${LABEL})*$`);

const connectSchema = z.object({
  mode: z.literal('Connect'),
  url: z
    .string()
    .max(300)
    .refine(
      (url) => parseProxyUrl(url) !== undefined,
      'must be "http://host:port" or "https://host:port", in lower case and with nothing else',
    ),
  /** `Local`: names of servers are resolved by the sidecar, too, and every address is judged. */
  resolve: z.enum(['Local', 'ProxyOnly']),
  /** Resolves to a metadata address; the proxy must refuse it. */
  metadataName: z.string().max(253).regex(HOST_NAME).optional(),
});

export const proxySchema = z.discriminatedUnion('mode', [
  z.object({ mode: z.literal('Direct') }),
  connectSchema,
]);

export type ConnectProxyConfig = z.infer<typeof connectSchema>;
