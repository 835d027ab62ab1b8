// The system's resolver in a process of its own, for one question: disposing of it ends a question
// that nobody waits for any more.

import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';

import type { ResolveHost } from '#core/egress/pinned-lookup.ts';

import { hostAnswerSchema, READY } from './resolve-host.ts';

export class ChildResolver {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Ready to be asked, so that its start is not taken for a slow resolver. */
  static async start(): Promise<ChildResolver> {
    const child = fork(process.argv[1] ?? '', ['resolve-host'], { stdio: 'inherit' });
    await new Promise((resolve) => {
      // One that did not start answers like a resolver that failed.
      child.on('error', resolve).once('exit', resolve);
      child.once('message', (word) => {
        if (word === READY) resolve(undefined);
      });
    });
    return new ChildResolver(child);
  }

  readonly resolve: ResolveHost = (hostname, _options, callback) => {
    const fail = (code: string): void =>
      callback(Object.assign(new Error('the lookup failed'), { code }), []);
    if (!this.#child.connected) {
      fail('EXITED');
      return;
    }
    this.#child
      .once('message', (message) => {
        const { code, addresses } = hostAnswerSchema.parse(message);
        if (code === undefined) callback(null, addresses);
        else fail(code);
      })
      .once('exit', () => fail('EXITED'));
    this.#child.send(hostname);
  };

  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL');
  }
}
