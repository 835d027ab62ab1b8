// One operator process as far as the leader lease is concerned: waits for the lease, then writes to a
// ConfigMap ten times a second through the gate, until it loses the lease or is asked to end.
//   node lease-holder.ts KUBECONFIG IDENTITY
// Prints `leading` when it leads. Exits 1 on a lost lease, 0 after SIGTERM.

import { systemClock } from '#core/clock.ts';
import { createLogger } from '#core/telemetry/log.ts';
import { KubeClient } from '#operator/kube/kube-client.ts';
import { kubeConfigLoader } from '#operator/kube/kube-config.ts';
import { CONFIG_MAPS } from '#operator/kube/kube-object.ts';
import { LeaderLease } from '#operator/watch/leader-lease.ts';

const [kubeconfigPath = '', identity = ''] = process.argv.slice(2);
const client = await KubeClient.open({
  loadConfig: kubeConfigLoader({ kubeconfigPath }),
  userAgent: `lease-holder/${identity}`,
});
const lease = new LeaderLease({
  client,
  namespace: 'default',
  name: 'fairlead-operator',
  identity,
  clock: systemClock,
  log: createLogger({ name: identity, level: 'info' }),
  onLost: () => process.exit(1),
});
const stopping = new AbortController();
process.once('SIGTERM', () => stopping.abort());

lease.start();
const isLeading = await Promise.race([
  lease.acquired.then(() => true),
  new Promise<false>((resolve) => stopping.signal.addEventListener('abort', () => resolve(false))),
]);
if (isLeading) process.stdout.write('leading\n');
const gated = client.gatedBy(lease);
for (let count = 0; isLeading && !stopping.signal.aborted; count += 1) {
  const metadata = { name: 'written-by-the-leader', namespace: 'default' };
  const data = { count: String(count), by: identity };
  await gated
    .apply(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data })
    .catch(() => undefined);
  await systemClock.sleep(100);
}
await lease.release();
await client[Symbol.asyncDispose]();
