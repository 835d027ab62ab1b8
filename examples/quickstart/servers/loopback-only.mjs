// Preloaded with --import: servers of this process that name no address listen on 127.0.0.1.
// The reference server listens on every interface; a demonstration must not open a laptop to its
// network.

import { Server } from 'node:net';

const listen = Server.prototype.listen;

Server.prototype.listen = function listenOnLoopback(...args) {
  const [first, ...rest] = args;
  if (typeof first === 'object' && first !== null) {
    const hasAddress = 'path' in first || 'host' in first || !('port' in first);
    return listen.call(this, hasAddress ? first : { ...first, host: '127.0.0.1' }, ...rest);
  }
  const isPort = first === undefined || /^\d+$/.test(String(first));
  if (!isPort || typeof rest[0] === 'string') return listen.apply(this, args);
  // (port, backlog?, callback?)
  const backlog = rest.find((arg) => typeof arg === 'number');
  const callback = rest.find((arg) => typeof arg === 'function');
  return listen.call(this, { port: Number(first ?? 0), host: '127.0.0.1', backlog }, callback);
};
