// Gathers the chunks of one body up to a cap. A body that came in one chunk is not copied.

export class BodyBuffer {
  #chunks: Buffer[] = [];
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** False when the cap is passed; then nothing is kept any more. */
  push(chunk: Buffer, maxBytes: number): boolean {
    this.#bytes += chunk.length;
    if (this.#bytes > maxBytes) {
      this.#chunks = [];
      return false;
    }
    this.#chunks.push(chunk);
    return true;
  }

  whole(): Buffer {
    const [first] = this.#chunks;
    return first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
  }
}
