// A name server that answers what a test scripts, question by question, with a time to live of 0
// seconds: the one that an attacker runs for a name of his own. UDP, A and AAAA only (RFC 1035).

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIP, isIPv6, SocketAddress } from 'node:net';

export interface Question {
  readonly name: string;
  readonly type: 'A' | 'AAAA';
  /** How often this name was asked for with this type before. */
  readonly before: number;
}

export type AnswerScript = (question: Question) => readonly string[];

export interface ScriptedDns extends AsyncDisposable {
  readonly port: number;
  /** How often the name was asked for, with either type. */
  askedFor(name: string): number;
}

const TYPES: Readonly<Record<number, Question['type']>> = { 1: 'A', 28: 'AAAA' };
const HEADER = 12;

export async function startScriptedDns(script: AnswerScript): Promise<ScriptedDns> {
  const asked = new Map<string, number>();
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const { name, typeCode, end } = readQuestion(query);
    const type = TYPES[typeCode];
    const key = `${name} ${type ?? ''}`;
    const before = asked.get(key) ?? 0;
    asked.set(key, before + 1);
    const addresses = type === undefined ? [] : script({ name, type, before });
    socket.send(renderAnswer(query.subarray(0, end), addresses), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    port: socket.address().port,
    askedFor: (name) => (asked.get(`${name} A`) ?? 0) + (asked.get(`${name} AAAA`) ?? 0),
    async [Symbol.asyncDispose]() {
      const closed = once(socket, 'close');
      socket.close();
      await closed;
    },
  };
}

function readQuestion(query: Buffer): { name: string; typeCode: number; end: number } {
  const labels: string[] = [];
  let at = HEADER;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length).toLowerCase());
    at += 1 + length;
  }
  return { name: labels.join('.'), typeCode: query.readUInt16BE(at + 1), end: at + 5 };
}

function renderAnswer(query: Buffer, addresses: readonly string[]): Buffer {
  const header = Buffer.from(query.subarray(0, HEADER));
  // A response, authoritative, no error; one question and no additional records.
  header.writeUInt16BE(0x8400, 2);
  header.writeUInt16BE(addresses.length, 6);
  header.writeUInt32BE(0, 8);
  return Buffer.concat([header, query.subarray(HEADER), ...addresses.map(renderRecord)]);
}

function renderRecord(address: string): Buffer {
  if (isIP(address) === 0) throw new TypeError(`no address: ${JSON.stringify(address)}`);
  const data = isIPv6(address) ? ipv6Bytes(address) : Buffer.from(address.split('.').map(Number));
  // The name is a pointer to the question's; then type, class IN, time to live 0, length.
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc000 + HEADER, 0);
  head.writeUInt16BE(data.length === 16 ? 28 : 1, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function ipv6Bytes(address: string): Buffer {
  const plain = new SocketAddress({ address, family: 'ipv6' }).address;
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(plain);
  const hex = (high = '0', low = '0'): string => (Number(high) * 256 + Number(low)).toString(16);
  const text =
    dotted === null
      ? plain
      : `${dotted[1] ?? ''}${hex(dotted[2], dotted[3])}:${hex(dotted[4], dotted[5])}`;
  const [front = '', back] = text.split('::');
  const words = (part: string): string[] => (part === '' ? [] : part.split(':'));
  const gap = back === undefined ? 0 : 8 - words(front).length - words(back).length;
  const all = [...words(front), ...Array.from({ length: gap }, () => '0'), ...words(back ?? '')];
  return Buffer.from(all.flatMap((word) => [parseInt(word, 16) >> 8, parseInt(word, 16) & 0xff]));
}
