import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { suite, test } from 'node:test';

import { Registry } from 'prom-client';

import { systemClock } from '#core/clock.ts';
import { createSidecarMetrics } from '#core/telemetry/metrics.ts';
import type { FinishedCall } from '#core/telemetry/metrics.ts';
import { registerProcessMetrics } from '#core/telemetry/process-metrics.ts';
import { renderMetricTable } from '../../../tools/render-metric-table.ts';

function finished(change: Partial<FinishedCall> = {}): FinishedCall {
  return {
    alias: 'files',
    resultClass: 'ok',
    durationMs: 30,
    queueWaitMs: 2,
    requestBytes: 10,
    responseBytes: 20,
    ...change,
  };
}

function linesOf(text: string): readonly string[] {
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

suite('the sidecar metrics', () => {
  test('docs/metrics.md lists what is registered, by name, type, labels and meaning', async () => {
    const docs = await readFile(new URL('../../../docs/metrics.md', import.meta.url), 'utf8');
    assert.equal(docs, await renderMetricTable(), 'run npm run generate');
  });

  test('a call shows as counter, duration, queue wait, bytes and in flight', async () => {
    const registry = new Registry();
    const metrics = createSidecarMetrics(registry);
    metrics.serversAnnounced(['files']);
    metrics.callStarted('files');
    metrics.callStarted('files');
    metrics.callFinished(finished());
    metrics.callFinished(finished({ resultClass: 'refused', durationMs: 0 }), false);
    const lines = linesOf(await registry.metrics());
    for (const line of [
      'fairlead_calls_total{server="files",result_class="ok"} 1',
      'fairlead_calls_total{server="files",result_class="refused"} 1',
      'fairlead_calls_in_flight{server="files"} 1',
      'fairlead_call_bytes_total{server="files",direction="response"} 40',
      'fairlead_call_duration_seconds_bucket{server="files",le="0.025"} 1',
      'fairlead_call_duration_seconds_bucket{server="files",le="0.05"} 2',
      'fairlead_call_duration_seconds_bucket{server="files",le="+Inf"} 2',
      'fairlead_call_duration_seconds_sum{server="files"} 0.03',
      'fairlead_call_duration_seconds_count{server="files"} 2',
      'fairlead_call_queue_wait_seconds_count{server="files"} 2',
    ]) {
      assert.ok(lines.includes(line), `${line} is missing in\n${lines.join('\n')}`);
    }
  });

  test('buckets count what is at most their bound', async () => {
    const registry = new Registry();
    const metrics = createSidecarMetrics(registry);
    metrics.serversAnnounced(['files']);
    for (const durationMs of [-1, 5, 5.001, 299_000, 900_000, Number.NaN])
      metrics.callFinished(finished({ durationMs }));
    const lines = linesOf(await registry.metrics());
    assert.ok(lines.includes('fairlead_call_duration_seconds_bucket{server="files",le="0.005"} 3'));
    assert.ok(lines.includes('fairlead_call_duration_seconds_bucket{server="files",le="300"} 5'));
    assert.ok(lines.includes('fairlead_call_duration_seconds_bucket{server="files",le="+Inf"} 6'));
  });

  test('configuration, catalog, sessions, egress and drain show their last state', async () => {
    const registry = new Registry();
    const metrics = createSidecarMetrics(registry);
    metrics.serversAnnounced(['files']);
    metrics.configReloaded('applied', 1_700_000_000_000);
    metrics.configInForce('r1');
    metrics.configInForce('r2');
    metrics.configReloaded('rejected', 1_700_000_001_500);
    metrics.catalogRefreshed('files', 'changed');
    metrics.serverChanged('files', { isAvailable: true, toolCount: 12 });
    metrics.catalogRefreshed('files', 'failed');
    metrics.serverChanged('files', { isAvailable: false, toolCount: 12 });
    metrics.sessionsChanged('agent', 3);
    const denied = { verdict: 'deny', stage: 'resolve', reason: 'special-address' } as const;
    metrics.egressDecided('files', denied);
    metrics.egressDecided('files', { ...denied, lookupMs: 20 });
    metrics.egressDecided('files', { verdict: 'allow', stage: 'redirect', reason: 'ok', hop: 1 });
    metrics.drainStarted();
    const lines = linesOf(await registry.metrics());
    for (const line of [
      'fairlead_config_reloads_total{outcome="applied"} 1',
      'fairlead_config_info{revision="r2"} 1',
      'fairlead_config_last_reload_successful 0',
      'fairlead_config_last_reload_timestamp_seconds 1700000001.5',
      'fairlead_catalog_tools{server="files"} 12',
      'fairlead_catalog_refreshes_total{server="files",outcome="failed"} 1',
      'fairlead_server_available{server="files"} 0',
      'fairlead_sessions{side="agent"} 3',
      'fairlead_egress_decisions_total{server="files",verdict="deny",stage="resolve",reason="special-address"} 2',
      'fairlead_egress_lookup_seconds_bucket{server="files",le="0.025"} 1',
      'fairlead_egress_lookup_seconds_count{server="files"} 1',
      'fairlead_egress_redirect_hops_total{server="files"} 1',
      'fairlead_draining 1',
    ]) {
      assert.ok(lines.includes(line), `${line} is missing in\n${lines.join('\n')}`);
    }
    assert.ok(!lines.some((line) => line.includes('r1')));
  });
});

suite('the series of the sidecar metrics', () => {
  test('series stay bounded through churn, and go with their server', async () => {
    const registry = new Registry();
    const metrics = createSidecarMetrics(registry);
    for (let round = 0; round < 50; round += 1) {
      const aliases = Array.from({ length: 200 }, (_, index) => `server-${round}-${index}`);
      metrics.serversAnnounced(aliases);
      for (const alias of aliases) {
        metrics.callStarted(alias);
        metrics.callFinished(finished({ alias }));
        metrics.callFinished(finished({ alias: `never-announced-${alias}` }));
      }
    }
    const before = linesOf(await registry.metrics());
    assert.ok(before.length < 65 * 60, `${before.length} series`);
    assert.ok(
      !before.some((line) => line.includes('server-48-') || line.includes('never-announced')),
    );
    metrics.serversAnnounced([]);
    const servers = new Set(
      linesOf(await registry.metrics()).map((line) => /server="([^"]*)"/.exec(line)?.[1]),
    );
    assert.deepEqual(
      [...servers].filter((server) => server !== undefined),
      ['other'],
    );
  });

  test('a call that ends after its server went does not bring the series back, nor count below zero', async () => {
    const registry = new Registry();
    const metrics = createSidecarMetrics(registry);
    metrics.serversAnnounced(['files']);
    metrics.callStarted('files');
    metrics.serversAnnounced([]);
    metrics.callFinished(finished());
    metrics.serversAnnounced(['files']);
    metrics.callFinished(finished({ alias: undefined }));
    const lines = linesOf(await registry.metrics());
    assert.ok(lines.includes('fairlead_calls_in_flight{server="files"} 0'));
    assert.ok(lines.includes('fairlead_calls_in_flight{server="other"} 0'));
    assert.ok(lines.includes('fairlead_calls_total{server="other",result_class="ok"} 2'));
  });

  test('every sample has exactly the labels that its metric declares', async () => {
    const registry = new Registry();
    const metrics = createSidecarMetrics(registry);
    registerProcessMetrics(registry, systemClock);
    metrics.serversAnnounced(['files']);
    metrics.callFinished(finished());
    metrics.catalogRefreshed('files', 'changed');
    metrics.configReloaded('applied', 1);
    metrics.configInForce('r1');
    metrics.sessionsChanged('agent', 1);
    metrics.egressDecided('files', { verdict: 'allow', stage: 'peer', reason: 'ok' });
    for (const { name, values } of await registry.getMetricsAsJSON()) {
      const declared: unknown = Reflect.get(Object(registry.getSingleMetric(name)), 'labelNames');
      assert.ok(values.length > 0, `${name} has no sample`);
      for (const { labels } of values) {
        assert.deepEqual(
          Object.keys(labels).filter((label) => label !== 'le'),
          declared,
          name,
        );
      }
    }
  });

  test('no label names a tenant, a user, a session, a tool or an address', async () => {
    const docs = await renderMetricTable();
    const labels = docs
      .split('\n')
      .filter((line) => line.startsWith('| `'))
      .map((line) => line.split('|')[3] ?? '');
    assert.ok(labels.length > 20);
    assert.ok(!labels.some((label) => /tenant|user|session|tool|address|pod/.test(label)));
  });
});

test('the process metrics are readable and plausible', async () => {
  const registry = new Registry();
  registerProcessMetrics(registry, systemClock);
  const values = new Map(
    (await registry.getMetricsAsJSON()).map(({ name, values: [first] }) => [name, first?.value]),
  );
  assert.ok((values.get('process_resident_memory_bytes') ?? 0) > 1e6);
  assert.ok((values.get('process_cpu_seconds_total') ?? 0) > 0);
  const utilization = values.get('nodejs_eventloop_utilization') ?? -1;
  assert.ok(utilization >= 0 && utilization <= 1);
});
