// The certificate that this binding shows to the egress proxy, from a mounted directory: tls.crt,
// tls.key, and ca.crt for the proxy's own certificate. It lives for a day, so the directory is
// watched and a new pair is used from the next tunnel on. A pair that does not fit together is half
// a change, never used; the last good one stays. Nothing of the key leaves this object but to TLS.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

import type { Clock } from '#core/clock.ts';
import type { ProxyIdentity } from '#core/egress/proxy-route.ts';
import type { Logger } from '#core/telemetry/log.ts';
import { DirectoryWatch, resolveData } from '#sidecar/config/config-directory.ts';

/** Certificates and keys are a few KiB; a bundle of authorities may be more. */
const MAX_FILE_BYTES = 1024 * 1024;

export type CertificateState = 'pending' | 'ready';

/** What is wrong with the files, as a word; never a part of them. */
export type CertificateFault = 'missing' | 'unreadable' | 'not-a-certificate' | 'not-a-pair';

export interface ClientCertificateOptions {
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Another certificate is used from now on. */
  readonly onChanged: () => void;
}

export class ClientCertificate {
  readonly #options: ClientCertificateOptions;
  readonly #watch: DirectoryWatch;
  #identity: ProxyIdentity | 'pending' = 'pending';
  #fault: CertificateFault | undefined;
  #isWarned = false;
  #reading: Promise<void> | undefined;
  #isReadWanted = false;
  #isClosed = false;

  constructor(options: ClientCertificateOptions) {
    this.#options = options;
    const { directory, clock } = options;
    this.#watch = new DirectoryWatch(directory, clock, () => void this.read());
    this.#watch.start();
  }

  get identity(): ProxyIdentity | 'pending' {
    return this.#identity;
  }

  get state(): CertificateState {
    return this.#identity === 'pending' ? 'pending' : 'ready';
  }

  /** Of the files as they are now; the certificate in use may be an older one. */
  get fault(): CertificateFault | undefined {
    return this.#fault;
  }

  /** Looks now; calls while a look is under way lead to one more look. */
  read(): Promise<void> {
    this.#isReadWanted = true;
    this.#reading ??= this.#readUntilSettled().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  close(): void {
    this.#isClosed = true;
    this.#watch.close();
  }

  async #readUntilSettled(): Promise<void> {
    while (this.#isReadWanted && !this.#isClosed) {
      this.#isReadWanted = false;
      this.#take(judgeFiles(await readFiles(this.#options.directory)));
    }
  }

  #take(judged: ProxyIdentity | CertificateFault): void {
    if (this.#isClosed) return;
    const { log, onChanged } = this.#options;
    if (typeof judged === 'string') {
      if (judged !== this.#fault || !this.#isWarned)
        log.warn(
          { event: 'proxy-certificate', reason: judged, in_use: this.state === 'ready' },
          'the client certificate for the egress proxy cannot be used',
        );
      this.#fault = judged;
      this.#isWarned = true;
      return;
    }
    this.#fault = undefined;
    this.#isWarned = false;
    if (isSameIdentity(judged, this.#identity)) return;
    this.#identity = judged;
    log.info({ event: 'proxy-certificate' }, 'client certificate for the egress proxy read');
    onChanged();
  }
}

interface CertificateFiles {
  readonly certPem: string;
  readonly keyPem: string;
  readonly caPem: string | undefined;
}

/** All through one resolved target: a swap of the volume never mixes two pairs. */
async function readFiles(directory: string): Promise<CertificateFiles | CertificateFault> {
  try {
    const data = await resolveData(directory);
    const certPem = await readPem(join(data, 'tls.crt'));
    const keyPem = await readPem(join(data, 'tls.key'));
    const caPem = await readPem(join(data, 'ca.crt'));
    if (certPem === undefined || keyPem === undefined) return 'missing';
    return { certPem, keyPem, caPem };
  } catch {
    return 'unreadable';
  }
}

async function readPem(path: string): Promise<string | undefined> {
  try {
    const { size } = await stat(path);
    if (size > MAX_FILE_BYTES) throw new RangeError('too large');
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && Reflect.get(error, 'code') === 'ENOENT') return undefined;
    throw error;
  }
}

/** Pure. What the libraries say of a bad key is dropped, not passed on. */
export function judgeFiles(
  files: CertificateFiles | CertificateFault,
): ProxyIdentity | CertificateFault {
  if (typeof files === 'string') return files;
  const { certPem, keyPem, caPem } = files;
  try {
    const certificate = new X509Certificate(certPem);
    if (caPem !== undefined) new X509Certificate(caPem);
    if (!certificate.checkPrivateKey(createPrivateKey(keyPem))) return 'not-a-pair';
  } catch {
    return 'not-a-certificate';
  }
  return { caPem, client: { certPem, keyPem } };
}

function isSameIdentity(a: ProxyIdentity, b: ProxyIdentity | 'pending'): boolean {
  return (
    b !== 'pending' &&
    a.caPem === b.caPem &&
    a.client?.certPem === b.client?.certPem &&
    a.client?.keyPem === b.client?.keyPem
  );
}
