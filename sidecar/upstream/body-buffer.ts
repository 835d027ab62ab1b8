// Gathers the pieces of one body, or of one line, up to a cap. What came in one piece is not
// copied, nor are the first few. Many small ones are: kept as they came, a peer that sends single
// bytes would cost a hundred times the memory that the cap allows.

const FEW_PIECES = 16;
/** Pieces below this are copied together. */
const SMALL_BYTES = 2_048;
const BLOCK_BYTES = 65_536;

export class BodyBuffer {
  #pieces: Buffer[] = [];
  /** Takes small pieces until it is full or a large one comes. */
  #block: Buffer | undefined;
  #blockUsed = 0;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** False when the cap is passed; then nothing is kept any more. */
  push(piece: Buffer, maxBytes: number): boolean {
    this.#bytes += piece.length;
    if (this.#bytes > maxBytes) {
      this.#pieces = [];
      this.#block = undefined;
      return false;
    }
    if (this.#pieces.length < FEW_PIECES || piece.length >= SMALL_BYTES) {
      this.#closeBlock();
      this.#pieces.push(piece);
    } else {
      this.#pack(piece);
    }
    return true;
  }

  whole(): Buffer {
    this.#closeBlock();
    const [first] = this.#pieces;
    return first !== undefined && this.#pieces.length === 1 ? first : Buffer.concat(this.#pieces);
  }

  #pack(piece: Buffer): void {
    if (this.#blockUsed + piece.length > BLOCK_BYTES) this.#closeBlock();
    this.#block ??= Buffer.allocUnsafeSlow(BLOCK_BYTES);
    this.#blockUsed += piece.copy(this.#block, this.#blockUsed);
  }

  #closeBlock(): void {
    if (this.#block === undefined || this.#blockUsed === 0) return;
    const used = this.#block.subarray(0, this.#blockUsed);
    if (this.#blockUsed < BLOCK_BYTES / 2) {
      this.#pieces.push(Buffer.from(used));
    } else {
      this.#pieces.push(used);
      this.#block = undefined;
    }
    this.#blockUsed = 0;
  }
}
