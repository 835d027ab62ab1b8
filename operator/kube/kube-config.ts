// Where the API server is and how to authenticate to it: client-node's KubeConfig reads kubeconfig files,
// the in-cluster mount and exec plugins; everything after that is ours.
// client-node is loaded only when a configuration is asked for, and only its config module: it costs
// about half a second and 90 MB, which programs that never talk to a cluster must not pay.

import { readFile } from 'node:fs/promises';
import type { ConnectionOptions } from 'node:tls';
import type { KubeConfig } from '@kubernetes/client-node';

export type { KubeConfig } from '@kubernetes/client-node';

/**
 * Reads the configuration anew on each call. A 401 calls it again, so that a rotated token, a rewritten
 * kubeconfig or an exec plugin's new credential is picked up at once.
 */
export type KubeConfigLoader = () => Promise<KubeConfig>;

export interface KubeConfigSource {
  /** Absent: KUBECONFIG, ~/.kube/config or the in-cluster mount, in client-node's order. */
  readonly kubeconfigPath?: string;
  readonly context?: string;
}

export function kubeConfigLoader(source: KubeConfigSource = {}): KubeConfigLoader {
  return async () => {
    const { KubeConfig: Config } = await import('@kubernetes/client-node/dist/config.js');
    const config = new Config();
    if (source.kubeconfigPath === undefined) loadFound(config);
    else config.loadFromFile(source.kubeconfigPath);
    if (source.context !== undefined) config.setCurrentContext(source.context);
    return config;
  };
}

/** Where client-node looks when it has found nothing; it would then refuse its own address as not https. */
const NOTHING_FOUND = 'http://localhost:8080';

function loadFound(config: KubeConfig): void {
  config.loadFromDefault();
  const cluster = config.getCurrentCluster();
  if (cluster?.server !== NOTHING_FOUND || cluster.skipTLSVerify === true) return;
  throw new Error(
    'no cluster is configured: there is no --kubeconfig, no KUBECONFIG, no ~/.kube/config and no service account of a pod',
  );
}

const SERVICE_ACCOUNT_NAMESPACE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/** The namespace of the current context, else of the pod, else `default`. */
export async function currentNamespace(config: KubeConfig): Promise<string> {
  const named = config.getContextObject(config.getCurrentContext())?.namespace;
  if (named !== undefined && named !== '') return named.trim();
  const mounted = await readFile(SERVICE_ACCOUNT_NAMESPACE, 'utf8').catch(() => '');
  return mounted.trim() === '' ? 'default' : mounted.trim();
}

export type KubeTls = Pick<
  ConnectionOptions,
  'ca' | 'cert' | 'key' | 'pfx' | 'passphrase' | 'rejectUnauthorized' | 'servername'
>;

/** What one request needs: where to, how to verify, who to be. */
export interface KubeCredentials {
  readonly serverUrl: URL;
  readonly proxyUrl: string | undefined;
  readonly tls: KubeTls;
  readonly headers: Readonly<Record<string, string>>;
}

/** Reads certificate files and tokens as they are now. */
export async function readCredentials(config: KubeConfig): Promise<KubeCredentials> {
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw new Error('the kubeconfig has no current cluster');
  const serverUrl = new URL(cluster.server);
  if (serverUrl.protocol !== 'https:' && serverUrl.protocol !== 'http:') {
    throw new Error(
      `the kubeconfig names an API server that is neither https nor http: ${JSON.stringify(cluster.server)}`,
    );
  }
  const options: Parameters<KubeConfig['applyToHTTPSOptions']>[0] = { headers: {} };
  await config.applyToHTTPSOptions(options);
  return {
    serverUrl,
    proxyUrl: cluster.proxyUrl,
    tls: tlsOptions(options),
    headers: headersOf(options),
  };
}

function tlsOptions(options: KubeTls): KubeTls {
  const { ca, cert, key, pfx, passphrase, rejectUnauthorized, servername } = options;
  const given = { ca, cert, key, pfx, passphrase, rejectUnauthorized, servername };
  return Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined && value !== null),
  );
}

function headersOf(options: { headers?: unknown; auth?: unknown }): Record<string, string> {
  const given = Object.entries(options.headers ?? {}).filter(
    ([, value]) => typeof value === 'string',
  );
  const headers: Record<string, string> = Object.fromEntries(
    given.map(([name, value]) => [name.toLowerCase(), String(value).trim()]),
  );
  if (typeof options.auth === 'string')
    headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`;
  return headers;
}
