// Puts TLS before a plain loopback server, byte for byte: `node tls-front.ts ADDRESS PORT TARGET_PORT CERT KEY`.

import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { createServer } from 'node:tls';

const [address, port, targetPort, certPath, keyPath] = process.argv.slice(2);
if (address === undefined || certPath === undefined || keyPath === undefined) {
  throw new TypeError('usage: tls-front ADDRESS PORT TARGET_PORT CERT KEY');
}

const server = createServer(
  { cert: readFileSync(certPath), key: readFileSync(keyPath) },
  (socket) => {
    const target = connect(Number(targetPort), '127.0.0.1');
    socket.pipe(target).pipe(socket);
    socket.on('error', () => target.destroy());
    target.on('error', () => socket.destroy());
  },
);
server.listen(Number(port), address, () => process.stdout.write('listening\n'));
