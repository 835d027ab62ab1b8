// Reads the API server's audit log: who wrote what, and how the server answered. Tests count writes with
// it ("a second pass writes nothing"), which no client-side counter could prove.

import { open } from 'node:fs/promises';

import { systemClock } from '#core/clock.ts';

const WRITE_VERBS = new Set(['create', 'update', 'patch', 'delete', 'deletecollection']);

export interface AuditEntry {
  /** `ResponseComplete`; a watch has a `ResponseStarted` before it. */
  readonly stage: string;
  readonly verb: string;
  readonly user: string;
  readonly userAgent: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly code: number;
  readonly uri: string;
  /** When the server received it. */
  readonly receivedAt: string;
  readonly requestObject: unknown;
}

/** A place in the log; entries after it are "since". */
export type AuditMark = number;

export interface AuditLogOptions {
  readonly path: string;
  /** Sends a request with this path to the API server. */
  readonly touch: (path: string) => Promise<void>;
}

export class AuditLog {
  readonly #options: AuditLogOptions;
  #touches = 0;

  constructor(options: AuditLogOptions) {
    this.#options = options;
  }

  /** The end of the log, after everything that was answered before this call has been written. */
  async mark(): Promise<AuditMark> {
    return (await this.#settledBytes()).length;
  }

  async entriesSince(mark: AuditMark): Promise<readonly AuditEntry[]> {
    const bytes = await this.#settledBytes();
    const lines = bytes.subarray(mark).toString('utf8').split('\n');
    return lines.filter((line) => line.startsWith('{')).map(parseAuditLine);
  }

  /** Writes that the server answered; refused ones too, with their code. Lease renewals are left out. */
  async writesSince(
    mark: AuditMark,
    filter: { readonly userAgent?: RegExp; readonly withLeases?: boolean } = {},
  ): Promise<readonly AuditEntry[]> {
    const entries = await this.entriesSince(mark);
    return entries.filter(
      (entry) =>
        WRITE_VERBS.has(entry.verb) &&
        (filter.withLeases === true || entry.resource !== 'leases') &&
        (filter.userAgent === undefined || filter.userAgent.test(entry.userAgent)),
    );
  }

  /** Entries are written right after their answers: a request of our own is the end marker. */
  async #settledBytes(): Promise<Buffer> {
    this.#touches += 1;
    const marker = `/version?audit-marker=${String(process.pid)}-${String(this.#touches)}`;
    await this.#options.touch(marker);
    for (let attempt = 0; attempt < 100; attempt += 1) {
      const bytes = await readAll(this.#options.path);
      if (bytes.includes(`${marker}"`)) return bytes;
      await systemClock.sleep(50);
    }
    throw new Error('the audit log does not show a request that was answered 5 seconds ago');
  }
}

async function readAll(path: string): Promise<Buffer> {
  await using file = await open(path, 'r');
  return await file.readFile();
}

interface RawAuditEvent {
  readonly stage?: string;
  readonly verb?: string;
  readonly user?: { readonly username?: string };
  readonly userAgent?: string;
  readonly requestURI?: string;
  readonly objectRef?: Partial<Record<'resource' | 'subresource' | 'namespace' | 'name', string>>;
  readonly responseStatus?: { readonly code?: number };
  readonly requestReceivedTimestamp?: string;
  readonly requestObject?: unknown;
}

const EMPTY = { stage: '', verb: '', userAgent: '', requestURI: '', requestReceivedTimestamp: '' };
const NO_OBJECT = { resource: '', subresource: '', namespace: '', name: '' };

function parseAuditLine(line: string): AuditEntry {
  const event = { ...EMPTY, ...(JSON.parse(line) as RawAuditEvent) };
  const { resource, subresource, namespace, name } = { ...NO_OBJECT, ...event.objectRef };
  return {
    ...{
      stage: event.stage,
      verb: event.verb,
      userAgent: event.userAgent,
      resource,
      subresource,
      namespace,
      name,
    },
    user: event.user?.username ?? '',
    code: event.responseStatus?.code ?? 0,
    uri: event.requestURI,
    receivedAt: event.requestReceivedTimestamp,
    requestObject: event.requestObject,
  };
}
