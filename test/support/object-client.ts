// Sends objects of both kinds to a real API server and returns its whole answer: the tests need the
// causes of a refusal, which kubectl prints as text only.

import { readFile } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { text } from 'node:stream/consumers';

import { parse } from 'yaml';

export interface ApiAnswer {
  readonly status: number;
  readonly body: {
    readonly message?: string;
    readonly details?: { readonly causes?: readonly { readonly field: string }[] };
    readonly [field: string]: unknown;
  };
}

export interface ObjectRequest {
  /** Below /apis/fairlead.dev/v1alpha1/namespaces/default/. */
  readonly path: string;
  readonly method?: 'POST' | 'GET' | 'PATCH';
  readonly contentType?: string;
  readonly query?: Readonly<Record<string, string>>;
}

interface Kubeconfig {
  readonly clusters: readonly [
    {
      readonly cluster: { readonly server: string; readonly 'certificate-authority-data': string };
    },
  ];
  readonly users: readonly [
    {
      readonly user: {
        readonly 'client-certificate-data': string;
        readonly 'client-key-data': string;
      };
    },
  ];
}

export class ObjectClient implements Disposable {
  readonly #server: string;
  readonly #agent: Agent;

  private constructor(server: string, agent: Agent) {
    this.#server = server;
    this.#agent = agent;
  }

  static async open(kubeconfigPath: string): Promise<ObjectClient> {
    const config = parse(await readFile(kubeconfigPath, 'utf8')) as Kubeconfig;
    const { cluster } = config.clusters[0];
    const { user } = config.users[0];
    const decoded = (data: string): Buffer => Buffer.from(data, 'base64');
    const agent = new Agent({
      keepAlive: true,
      ca: decoded(cluster['certificate-authority-data']),
      cert: decoded(user['client-certificate-data']),
      key: decoded(user['client-key-data']),
    });
    return new ObjectClient(cluster.server, agent);
  }

  /** Everything is checked as for a real create with strict fields; nothing is stored. */
  async tryCreate(object: unknown): Promise<ApiAnswer> {
    const query = { dryRun: 'All', fieldValidation: 'Strict' };
    const kind = (object as { readonly kind: string }).kind;
    return this.send({ path: kind === 'McpServer' ? 'mcpservers' : 'mcpbindings', query }, object);
  }

  async send(what: ObjectRequest, body?: unknown): Promise<ApiAnswer> {
    const { method = 'POST', contentType = 'application/json', query = {} } = what;
    const url = new URL(
      `/apis/fairlead.dev/v1alpha1/namespaces/default/${what.path}`,
      this.#server,
    );
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const { promise, resolve, reject } = Promise.withResolvers<ApiAnswer>();
    const call = request(url, {
      method,
      agent: this.#agent,
      headers: { 'content-type': contentType },
    });
    call.once('error', reject);
    call.once('response', (response) => {
      const answer = text(response).then((json) => ({
        status: response.statusCode ?? 0,
        body: JSON.parse(json) as ApiAnswer['body'],
      }));
      answer.then(resolve, reject);
    });
    call.end(body === undefined ? undefined : JSON.stringify(body));
    return promise;
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}

/** The fields that the API server blames. */
export function blamedFields({ body }: ApiAnswer): readonly string[] {
  return (body.details?.causes ?? []).map(({ field }) => field);
}
