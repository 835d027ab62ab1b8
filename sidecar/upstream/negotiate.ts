// Finds out, once per partition and agent era, how to speak to a server: the mirror of the agent's
// era where the server has it, else the other one (MCP 2026-07-28, Versioning). A verdict is kept
// for an hour, or until the server refuses what it was made for, and renewed behind the calls'
// back; an outage, a refusal of authorization or a
// timeout is no verdict, and never replaces one. It retries nothing and sends no call.

import { LEGACY_VERSIONS, MODERN_VERSIONS } from '#core/config/sidecar-config.ts';
import type { ProtocolVersion } from '#core/config/sidecar-config.ts';
import { FairleadError } from '#core/errors.ts';
import type { ErrorCode } from '#core/errors.ts';
import { CLIENT_INFO } from '#core/version.ts';

import { sendControlRequest } from './control-request.ts';
import type { ControlAnswer } from './control-request.ts';
import { openLegacySession } from './legacy-session.ts';
import { readDiscover } from './read-discover.ts';
import type { DiscoverVerdict } from './read-discover.ts';
import { CAPABILITIES_KEY, CLIENT_INFO_KEY, VERSION_KEY } from './splice-json.ts';
import type { Side, UpstreamSession, UpstreamTarget } from './upstream-types.ts';

export type Era = Side['era'];

export interface NegotiatorOptions {
  /** Takes over a session that negotiation opened; false when it has no use for it. */
  readonly offerSession?: (session: UpstreamSession) => boolean;
  /** A renewed verdict differs from the one that calls and lists were made for. */
  readonly onSideChanged?: () => void;
}

const VERDICT_MS = 3_600_000;
/** After a failed renewal, calls go on with the old verdict and the next try waits. */
const RENEWAL_RETRY_MS = 60_000;

/** What a server says that does not speak an era, in contrast to one that is out of order. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'UPSTREAM_REFUSED',
  'UPSTREAM_PROTOCOL_ERROR',
]);

interface Verdict {
  readonly side: Side;
  renewAtMs: number;
  doubtAtMs: number;
}

export class SideNegotiator {
  readonly #target: UpstreamTarget;
  readonly #options: NegotiatorOptions;
  readonly #modernVersions: readonly ProtocolVersion[];
  readonly #legacyVersions: readonly ProtocolVersion[];
  #verdicts = new Map<Era, Verdict>();
  #running = new Map<Era, Promise<Side>>();

  constructor(target: UpstreamTarget, options: NegotiatorOptions = {}) {
    const { era, versions } = target.server.protocol;
    this.#target = target;
    this.#options = options;
    this.#modernVersions =
      era === 'Legacy' ? [] : MODERN_VERSIONS.filter((version) => versions.includes(version));
    this.#legacyVersions =
      era === 'Modern' ? [] : LEGACY_VERSIONS.filter((version) => versions.includes(version));
  }

  /** At once when the verdict is known. Rejects with the reason when there is none. */
  sideFor(agentEra: Era): Side | Promise<Side> {
    const verdict = this.#verdicts.get(agentEra);
    if (verdict === undefined) return this.#negotiateOnce(agentEra);
    if (this.#target.clock.monotonicMs() >= verdict.renewAtMs) this.#renew(agentEra, verdict);
    return verdict.side;
  }

  /**
   * The server refuses to be spoken to in this way: perhaps it was replaced by one of another era.
   * It is asked again, at most once a minute, while calls go on with the verdict that there is.
   */
  doubt(agentEra: Era): void {
    const verdict = this.#verdicts.get(agentEra);
    if (verdict === undefined || this.#target.clock.monotonicMs() < verdict.doubtAtMs) return;
    this.#renew(agentEra, verdict);
  }

  /** A verdict turned out wrong: the next call finds out anew. */
  forget(): void {
    this.#verdicts = new Map();
    this.#running = new Map();
  }

  #renew(agentEra: Era, verdict: Verdict): void {
    verdict.renewAtMs = this.#target.clock.monotonicMs() + RENEWAL_RETRY_MS;
    verdict.doubtAtMs = verdict.renewAtMs;
    this.#negotiateOnce(agentEra)
      .then((side) => {
        if (!isSameSide(side, verdict.side)) this.#options.onSideChanged?.();
      })
      .catch((error: unknown) => {
        this.#target.log.debug(
          { err: error, alias: this.#target.server.alias },
          'protocol not negotiated again; the old verdict stays',
        );
      });
  }

  #negotiateOnce(agentEra: Era): Promise<Side> {
    const known = this.#running.get(agentEra);
    if (known !== undefined) return known;
    // forget() replaces the maps: what was started before it leaves no trace.
    const verdicts = this.#verdicts;
    const running = this.#running;
    const negotiation = this.#negotiate(agentEra)
      .then((side) => {
        this.#remember(verdicts, agentEra, side);
        return side;
      })
      .finally(() => running.delete(agentEra));
    running.set(agentEra, negotiation);
    return negotiation;
  }

  #remember(verdicts: Map<Era, Verdict>, agentEra: Era, side: Side): void {
    const nowMs = this.#target.clock.monotonicMs();
    const times = { renewAtMs: nowMs + VERDICT_MS, doubtAtMs: nowMs + RENEWAL_RETRY_MS };
    verdicts.set(agentEra, { side, ...times });
    // The agent's era is missing on the server: then agents of the other era get the same side.
    if (side.era !== agentEra) verdicts.set(side.era, { side, ...times });
  }

  async #negotiate(agentEra: Era): Promise<Side> {
    if (this.#modernVersions.length === 0) return this.#handshake();
    if (this.#legacyVersions.length === 0) return this.#mustBeModern(await this.#discover());
    return agentEra === 'modern' ? this.#modernFirst() : this.#legacyFirst();
  }

  async #modernFirst(): Promise<Side> {
    const verdict = await this.#discover();
    return verdict.kind === 'not-modern' ? this.#handshake() : this.#mustBeModern(verdict);
  }

  async #legacyFirst(): Promise<Side> {
    try {
      return await this.#handshake();
    } catch (error) {
      if (!(error instanceof FairleadError) || !REFUSALS.has(error.code)) throw error;
      const verdict = await this.#discover();
      if (verdict.kind === 'not-modern') throw error;
      return this.#mustBeModern(verdict);
    }
  }

  #mustBeModern(verdict: DiscoverVerdict): Side {
    switch (verdict.kind) {
      case 'modern':
        return verdict.side;
      case 'refused':
        throw new FairleadError('UPSTREAM_PROTOCOL_ERROR', { logDetail: verdict.detail });
      case 'not-modern':
        throw new FairleadError('UPSTREAM_VERSION_UNSUPPORTED', {
          logDetail: `asked for ${this.#modernVersions.join(', ')}; ${verdict.detail}`,
        });
      case 'no-version':
        throw new FairleadError('UPSTREAM_VERSION_UNSUPPORTED', {
          logDetail: `asked for ${this.#modernVersions.join(', ')}, the server supports ${verdict.supported}`,
        });
      case 'retry':
        throw new FairleadError('UPSTREAM_VERSION_UNSUPPORTED', {
          logDetail: `the server refuses every version that it offers, ${verdict.version} last`,
        });
      default:
        return verdict satisfies never;
    }
  }

  async #handshake(): Promise<Side> {
    const [protocolVersion] = this.#legacyVersions;
    if (protocolVersion === undefined)
      throw new FairleadError('UPSTREAM_VERSION_UNSUPPORTED', {
        logDetail: 'protocol.versions has no version of the configured era',
      });
    const session = await openLegacySession(this.#target, {
      protocolVersion,
      clientCapabilities: {},
    });
    // Nobody waits for the DELETE of a session that nobody wants.
    if (this.#options.offerSession?.(session) !== true) void session.close();
    return session.side;
  }

  /** Each version is asked for at most once. */
  async #discover(): Promise<DiscoverVerdict> {
    let allowed = this.#modernVersions;
    let [asked] = allowed;
    let verdict: DiscoverVerdict = { kind: 'no-version', supported: '[]' };
    while (asked !== undefined) {
      const answer = await this.#askDiscover(asked);
      if (answer === undefined)
        return {
          kind: 'not-modern',
          detail: 'server/discover was refused without a JSON-RPC answer',
        };
      verdict = readDiscover(answer, asked, allowed);
      allowed = allowed.filter((version) => version !== asked);
      asked = verdict.kind === 'retry' ? verdict.version : undefined;
    }
    return verdict;
  }

  /** Undefined when the server refused in a way that is no JSON-RPC answer. */
  async #askDiscover(version: ProtocolVersion): Promise<ControlAnswer | undefined> {
    try {
      return await sendControlRequest(this.#target, {
        method: 'server/discover',
        params: { _meta: envelope(version) },
        headers: modernHeaders(version, 'server/discover'),
        timeoutMs: this.#target.server.limits.requestTimeoutMs,
      });
    } catch (error) {
      if (error instanceof FairleadError && REFUSALS.has(error.code)) return undefined;
      throw error;
    }
  }
}

function isSameSide(a: Side, b: Side): boolean {
  return a.era === b.era && a.protocolVersion === b.protocolVersion;
}

/** The `_meta` of our own modern requests. */
export function envelope(version: ProtocolVersion): Readonly<Record<string, unknown>> {
  return { [VERSION_KEY]: version, [CLIENT_INFO_KEY]: CLIENT_INFO, [CAPABILITIES_KEY]: {} };
}

/** The mirrored headers of our own modern requests. */
export function modernHeaders(version: ProtocolVersion, method: string): readonly string[] {
  return ['mcp-protocol-version', version, 'mcp-method', method];
}
