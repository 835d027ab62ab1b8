// How this sidecar reaches remote servers, as the configuration in force says: directly, or through
// one proxy. Another proxy, or another way of using it, is another object: connections hold on to
// the one they were made for, so that nothing made for one way goes another. It says in the log and
// on the status page why a proxy is not used.

import type { Clock } from '#core/clock.ts';
import type { ConnectProxyConfig } from '#core/config/proxy-schema.ts';
import { canonicalJson } from '#core/config/sidecar-config.ts';
import type { SidecarConfig } from '#core/config/sidecar-config.ts';
import type { EgressProxy } from '#core/egress/egress-proxy.ts';
import type { ProofState } from '#core/egress/proxy-proof.ts';
import { parseProxyUrl } from '#core/egress/proxy-policy.ts';
import { ProxyRoute } from '#core/egress/proxy-route.ts';
import type { ProxyIdentity } from '#core/egress/proxy-route.ts';
import { FairleadError, wireMessage } from '#core/errors.ts';
import type { Logger } from '#core/telemetry/log.ts';

import { ClientCertificate } from './client-certificate.ts';
import type { CertificateFault, CertificateState } from './client-certificate.ts';
import { ProxyGate } from './proxy-gate.ts';

export interface EgressPathOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** With tls.crt, tls.key and ca.crt; a start option. */
  readonly clientDirectory: string | undefined;
  /** Remote servers can be reached again, or for this reason none of them may be. */
  readonly onReachable: (refusal: FairleadError | undefined) => void;
}

/** On the status page. */
export interface ProxyStatus {
  readonly mode: 'Connect';
  readonly resolve: 'Local' | 'ProxyOnly';
  readonly state: ProofState['kind'];
  readonly reason: string | null;
  readonly certificate: {
    readonly state: CertificateState | 'none';
    readonly fault: CertificateFault | null;
  };
}

const NO_CERTIFICATE: ProxyIdentity = { caPem: undefined, client: undefined };

interface Path {
  readonly key: string;
  readonly config: ConnectProxyConfig;
  readonly gate: ProxyGate;
}

export class EgressPath {
  readonly #options: EgressPathOptions;
  #certificate: ClientCertificate | undefined;
  #path: Path | undefined;

  constructor(options: EgressPathOptions) {
    this.#options = options;
  }

  /** What new connections use; `retire` ends what was used before, when nothing uses it any more. */
  switchTo(config: SidecarConfig['proxy']): {
    readonly proxy: EgressProxy | undefined;
    readonly retire: () => void;
  } {
    const previous = this.#path;
    const key = config?.mode === 'Connect' ? canonicalJson(config) : undefined;
    if (previous?.key === key) return { proxy: previous?.gate, retire: () => {} };
    this.#path = config?.mode === 'Connect' ? this.#open(config, canonicalJson(config)) : undefined;
    return { proxy: this.#path?.gate, retire: () => previous?.gate.close() };
  }

  status(): ProxyStatus | undefined {
    if (this.#path === undefined) return undefined;
    const { config, gate } = this.#path;
    return {
      mode: 'Connect',
      resolve: config.resolve,
      state: gate.state.kind,
      reason: reasonOf(gate),
      certificate: {
        state: this.#certificate?.state ?? 'none',
        fault: this.#certificate?.fault ?? null,
      },
    };
  }

  /** Only where somebody has to act: a proxy that is away is no fault of this pod. */
  notReadyReason(): string | undefined {
    const { kind } = this.#path?.gate.state ?? {};
    return kind === 'lets-through' ? wireMessage('EGRESS_PROXY_OPEN') : undefined;
  }

  close(): void {
    this.#path?.gate.close();
    this.#certificate?.close();
  }

  #open(config: ConnectProxyConfig, key: string): Path {
    const { clock } = this.#options;
    const proxy = parseProxyUrl(config.url);
    if (proxy === undefined) throw new TypeError('the URL of the proxy was checked before');
    const certificate = this.#openCertificate();
    const gate = new ProxyGate({
      route: new ProxyRoute({
        proxy,
        identity: () => certificate?.identity ?? NO_CERTIFICATE,
        clock,
      }),
      resolvesLocally: config.resolve === 'Local',
      metadataName: config.metadataName,
      clock,
      onState: (state, before) => this.#tell(gate, state, before),
    });
    // The first proof waits for a first look at the files, and nothing else waits for either.
    if (certificate?.state === 'pending') void certificate.read().then(() => gate.prove());
    else gate.prove();
    return { key, config, gate };
  }

  /** One for the life of the process: the directory does not change. */
  #openCertificate(): ClientCertificate | undefined {
    const { clientDirectory: directory, clock, log } = this.#options;
    if (directory === undefined) return undefined;
    this.#certificate ??= new ClientCertificate({
      directory,
      clock,
      log,
      onChanged: () => this.#path?.gate.prove(),
    });
    return this.#certificate;
  }

  #tell(gate: ProxyGate, state: ProofState, before: ProofState): void {
    if (state.kind === before.kind || this.#path?.gate !== gate) return;
    const { log, onReachable } = this.#options;
    const line = { event: 'egress-proxy', state: state.kind };
    switch (state.kind) {
      case 'proven':
        log.info(line, 'the egress proxy refuses metadata addresses; remote servers are served');
        onReachable(undefined);
        break;
      case 'lets-through':
        log.error(
          { ...line, error_code: 'EGRESS_PROXY_OPEN', ...state.target },
          `${wireMessage('EGRESS_PROXY_OPEN')} No remote server is served.`,
        );
        onReachable(new FairleadError('EGRESS_PROXY_OPEN'));
        break;
      case 'unproven':
        log.warn(
          { ...line, error_code: 'EGRESS_PROXY_UNPROVEN', reason: state.reason },
          'the egress proxy gives no proof; no tunnel is opened until it does',
        );
        break;
      case 'pending':
        break;
      default:
        state satisfies never;
    }
  }
}

function reasonOf({ state }: ProxyGate): string | null {
  if (state.kind === 'unproven')
    return `EGRESS_PROXY_UNPROVEN: ${wireMessage('EGRESS_PROXY_UNPROVEN')} (${state.reason})`;
  return state.kind === 'lets-through'
    ? `EGRESS_PROXY_OPEN: ${wireMessage('EGRESS_PROXY_OPEN')}`
    : null;
}
