import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { createSidecarMetrics } from '#core/telemetry/metrics.ts';
import { MetricsPage } from '#sidecar/status/metrics-page.ts';

describe('the metrics page', () => {
  it('shows what was counted before the first scrape, and after it', async () => {
    const page = new MetricsPage();
    const metrics = createSidecarMetrics(page);
    metrics.serversAnnounced(['desk']);
    const call = {
      alias: 'desk',
      resultClass: 'ok',
      durationMs: 5,
      queueWaitMs: 0,
      requestBytes: 1,
      responseBytes: 1,
    };
    metrics.callFinished(call, false);
    const first = await page.render();
    assert.match(first.contentType, /^text\/plain/);
    assert.match(first.text, /^fairlead_calls_total\{.*server="desk".*\} 1$/m);
    metrics.callFinished(call, false);
    assert.match((await page.render()).text, /^fairlead_calls_total\{.*server="desk".*\} 2$/m);
  });

  it('takes no metric after the first scrape: it would never be shown', async () => {
    const page = new MetricsPage();
    await page.render();
    assert.throws(() => createSidecarMetrics(page), TypeError);
  });

  it('stays small however many servers and names come and go', async () => {
    const page = new MetricsPage();
    const metrics = createSidecarMetrics(page);
    for (let round = 0; round < 500; round += 1) {
      metrics.serversAnnounced([`server-${round}`]);
      metrics.callFinished(
        {
          alias: `hostile-${round}`,
          resultClass: 'ok',
          durationMs: 1,
          queueWaitMs: 0,
          requestBytes: 1,
          responseBytes: 1,
        },
        false,
      );
    }
    const lines = (await page.render()).text.split('\n').length;
    assert.ok(lines < 300, `${lines} lines`);
  });
});
