// The one shared connection pool to the API server, with the credentials that go on each request.
// Files are read again every 60 seconds, and at once when the server said 401; the pool is rebuilt only
// when certificates or addresses changed, so that 20 calls are one TLS handshake. Redirects are not
// followed here or anywhere: the pool has no such interceptor.

import { isDeepStrictEqual } from 'node:util';
import { Agent, ProxyAgent } from 'undici';
import type { Dispatcher } from 'undici';
import type { Clock } from '#core/clock.ts';
import { currentNamespace, readCredentials } from './kube-config.ts';
import type { KubeConfig, KubeConfigLoader, KubeCredentials } from './kube-config.ts';

const CREDENTIALS_TTL_MS = 60_000;
/** Shorter than the 90 s after which a Go server closes an idle connection. */
const KEEP_ALIVE_MS = 60_000;
const CONNECT_TIMEOUT_MS = 10_000;

export interface KubeConnectionOptions {
  readonly loadConfig: KubeConfigLoader;
  readonly clock: Clock;
}

/** What a request needs right now. */
export interface ReadyConnection {
  readonly dispatcher: Dispatcher;
  readonly serverUrl: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Goes up when credentials were read again; tells two 401s of one token apart. */
  readonly generation: number;
}

/** Extra dispatch option: called when the request is about to be written to its socket; may throw. */
export interface BeforeSend {
  readonly beforeSend?: () => void;
}

export class KubeConnection {
  readonly #options: KubeConnectionOptions;
  readonly namespace: string;
  #config: KubeConfig;
  #credentials: KubeCredentials;
  #pool: Dispatcher;
  #sending: Dispatcher;
  #generation = 0;
  #readAtMs: number;
  #reading: Promise<void> | undefined;

  private constructor(
    options: KubeConnectionOptions,
    loaded: { config: KubeConfig; credentials: KubeCredentials; namespace: string },
  ) {
    this.#options = options;
    this.#config = loaded.config;
    this.#credentials = loaded.credentials;
    this.namespace = loaded.namespace;
    this.#pool = createPool(loaded.credentials);
    this.#sending = this.#pool.compose(announceSend);
    this.#readAtMs = options.clock.monotonicMs();
  }

  static async open(options: KubeConnectionOptions): Promise<KubeConnection> {
    const config = await options.loadConfig();
    const [credentials, namespace] = await Promise.all([
      readCredentials(config),
      currentNamespace(config),
    ]);
    return new KubeConnection(options, { config, credentials, namespace });
  }

  get serverUrl(): URL {
    return this.#credentials.serverUrl;
  }

  async acquire(): Promise<ReadyConnection> {
    const isOld = this.#options.clock.monotonicMs() - this.#readAtMs >= CREDENTIALS_TTL_MS;
    if (isOld) await this.#singleRead(false);
    const { serverUrl, headers } = this.#credentials;
    return { dispatcher: this.#sending, serverUrl, headers, generation: this.#generation };
  }

  /** After a 401 with the credentials of `generation`: loads everything anew unless somebody has already. */
  async renew(generation: number): Promise<void> {
    if (generation === this.#generation) await this.#singleRead(true);
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  async #singleRead(isForced: boolean): Promise<void> {
    this.#reading ??= this.#read(isForced).finally(() => {
      this.#reading = undefined;
    });
    await this.#reading;
  }

  async #read(isForced: boolean): Promise<void> {
    try {
      // client-node caches token files for a minute of its own; only an exec plugin's credential,
      // which has an expiry, is worth keeping across a routine read.
      const hasExecPlugin = Boolean(this.#config.getCurrentUser()?.exec);
      if (isForced || !hasExecPlugin) this.#config = await this.#options.loadConfig();
      this.#use(await readCredentials(this.#config));
    } catch (error) {
      // A file in the middle of being replaced must not end a working connection: the next minute tries again.
      if (isForced) throw error;
    } finally {
      this.#readAtMs = this.#options.clock.monotonicMs();
      this.#generation += 1;
    }
  }

  #use(credentials: KubeCredentials): void {
    const before = this.#credentials;
    this.#credentials = credentials;
    const isSamePool =
      before.serverUrl.origin === credentials.serverUrl.origin &&
      before.proxyUrl === credentials.proxyUrl &&
      isDeepStrictEqual(before.tls, credentials.tls);
    if (isSamePool) return;
    const old = this.#pool;
    this.#pool = createPool(credentials);
    this.#sending = this.#pool.compose(announceSend);
    // Requests in flight, watches among them, end on the old connections at their own time.
    void old.close().catch(() => undefined);
  }
}

function createPool(credentials: KubeCredentials): Dispatcher {
  const connect = {
    ...credentials.tls,
    timeout: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
  };
  // HTTP/1.1: one stalled TCP connection then stalls one watch, not all of them.
  const pool = {
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
  };
  if (credentials.proxyUrl === undefined || credentials.proxyUrl === '')
    return new Agent({ ...pool, connect });
  if (!/^https?:\/\//.test(credentials.proxyUrl))
    throw new Error('proxy-url of the kubeconfig must be http or https');
  return new ProxyAgent({ ...pool, uri: credentials.proxyUrl, requestTls: credentials.tls });
}

/** Calls `beforeSend` at the last moment: after the connection is up, before the first byte. */
const announceSend: Dispatcher.DispatcherComposeInterceptor =
  (dispatch) => (options: Dispatcher.DispatchOptions & BeforeSend, handler) => {
    const { beforeSend, ...rest } = options;
    if (beforeSend === undefined) return dispatch(rest, handler);
    return dispatch(rest, {
      onRequestStart: (controller, context) => {
        beforeSend();
        handler.onRequestStart?.(controller, context);
      },
      onRequestUpgrade: (...args) => handler.onRequestUpgrade?.(...args),
      onResponseStart: (...args) => handler.onResponseStart?.(...args),
      onResponseData: (...args) => handler.onResponseData?.(...args),
      onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
      onResponseError: (...args) => handler.onResponseError?.(...args),
    });
  };
