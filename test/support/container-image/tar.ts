// A writer of ustar archives: regular files and folders, owned by root, without times, so that
// equal files give equal bytes. Longer names than ustar can hold are an error.

export interface TarEntry {
  /** Without leading slash; folders end with one. */
  readonly name: string;
  readonly mode: number;
  readonly content: Uint8Array;
}

const BLOCK = 512;

export function encodeTar(entries: readonly TarEntry[]): Buffer {
  const parts = entries.flatMap(({ name, mode, content }) => [
    encodeHeader({ name, mode, content }),
    content,
    Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK),
  ]);
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]);
}

function encodeHeader({ name, mode, content }: TarEntry): Buffer {
  const header = Buffer.alloc(BLOCK);
  const [prefix, short] = splitName(name);
  header.write(short, 0, 100, 'utf8');
  writeOctal(header, mode, { at: 100, digits: 7 });
  writeOctal(header, 0, { at: 108, digits: 7 });
  writeOctal(header, 0, { at: 116, digits: 7 });
  writeOctal(header, content.length, { at: 124, digits: 11 });
  writeOctal(header, 0, { at: 136, digits: 11 });
  header.write(name.endsWith('/') ? '5' : '0', 156);
  header.write('ustar\u000000', 257, 'latin1');
  header.write(prefix, 345, 155, 'utf8');
  // The checksum is computed with its own field full of spaces.
  header.fill(' ', 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\u0000 `, 148, 'latin1');
  return header;
}

function splitName(name: string): readonly [prefix: string, short: string] {
  if (Buffer.byteLength(name) <= 100) return ['', name];
  const cut = name.lastIndexOf('/', 155);
  const [prefix, short] = [name.slice(0, cut), name.slice(cut + 1)];
  if (cut <= 0 || short === '' || Buffer.byteLength(short) > 100) {
    throw new RangeError(`the name is too long for a ustar archive: ${name}`);
  }
  return [prefix, short];
}

interface OctalField {
  readonly at: number;
  readonly digits: number;
}

function writeOctal(header: Buffer, value: number, { at, digits }: OctalField): void {
  header.write(value.toString(8).padStart(digits, '0'), at, digits, 'latin1');
}
