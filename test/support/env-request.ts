// One request through a guarded pool, in a process of its own whose environment the test chose:
// `node env-request.ts PORT`. Prints the status, or why there is none.

import { goodCertificate, openPool } from './egress-pool.ts';
import { exchange } from './exchange-outcome.ts';
import { openFakeRemote } from './fake-remote.ts';

await using remote = await openFakeRemote({ certificate: goodCertificate });
const { pool } = openPool(remote.port);
const outcome = await exchange(pool);
const { statusCode, body } = await pool.request({ method: 'GET', path: '/' });
await body.dump();
await pool.destroy();
process.stdout.write(`${outcome.kind} ${String(statusCode)}\n`);
