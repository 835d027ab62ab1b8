// Writes down what a sink hears, and checks that nothing comes after the end.

import assert from 'node:assert/strict';

import type { AnswerSink, UpstreamFailure } from '#sidecar/upstream/upstream-types.ts';

export type Heard =
  | { readonly kind: 'json'; readonly status: number; readonly body: string }
  | { readonly kind: 'stream-start' }
  | { readonly kind: 'message'; readonly data: string }
  | { readonly kind: 'stream-end' }
  | { readonly kind: 'failure'; readonly failure: UpstreamFailure };

export class RecordingSink implements AnswerSink {
  readonly heard: Heard[] = [];
  readonly ended: Promise<void>;
  onHeaders: () => void = () => {};
  onEach: (heard: Heard) => void = () => {};
  #end: () => void = () => {};
  #hasEnded = false;

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  get last(): Heard | undefined {
    return this.heard.at(-1);
  }

  get messages(): string[] {
    return this.heard.flatMap((entry) => (entry.kind === 'message' ? [entry.data] : []));
  }

  get failure(): UpstreamFailure {
    const { last } = this;
    assert.ok(last?.kind === 'failure', `expected a failure, heard ${JSON.stringify(this.heard)}`);
    return last.failure;
  }

  onJson(status: number, body: Buffer): void {
    this.#hear({ kind: 'json', status, body: body.toString('utf8') }, true);
  }
  onStreamStart(): void {
    this.#hear({ kind: 'stream-start' });
  }
  onMessage(data: string): void {
    this.#hear({ kind: 'message', data });
  }
  onStreamEnd(): void {
    this.#hear({ kind: 'stream-end' }, true);
  }
  onFailure(failure: UpstreamFailure): void {
    this.#hear({ kind: 'failure', failure }, true);
  }

  #hear(heard: Heard, isEnd = false): void {
    assert.equal(this.#hasEnded, false, `heard after the end: ${JSON.stringify(heard)}`);
    this.heard.push(heard);
    this.onEach(heard);
    if (!isEnd) return;
    this.#hasEnded = true;
    this.#end();
  }
}
