import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseMcploadReport } from './mcpload-report.ts';

const LINE =
  '{"calls":48888,"errors":0,"secs":4.000,"rps":12221.5,"p50":2192.18,"p90":3741.13,"p99":8070.10,"firsterr":""}\n';

test('a report without failed calls gives the figures', () => {
  assert.deepEqual(parseMcploadReport(LINE), {
    kind: 'ok',
    calls: 48888,
    callsPerSecond: 12221.5,
    p50Us: 2192.18,
    p99Us: 8070.1,
  });
});

test('one failed call makes the window invalid and says which', () => {
  const verdict = parseMcploadReport(
    LINE.replace('"errors":0', '"errors":1').replace(
      '"firsterr":""',
      '"firsterr":"call: HTTP/1.1 503"',
    ),
  );
  assert.equal(verdict.kind, 'invalid');
  assert.match(
    verdict.kind === 'invalid' ? verdict.reason : '',
    /1 failed; first: call: HTTP\/1\.1 503/,
  );
});

for (const [what, text] of [
  ['no call', LINE.replace('48888', '0')],
  ['no output', ''],
  ['half a line', LINE.slice(0, 40)],
  ['no latency', LINE.replace('"p99":8070.10,', '')],
  ['another type', '[1]'],
] as const) {
  test(`a report with ${what} makes the window invalid`, () => {
    assert.equal(parseMcploadReport(text).kind, 'invalid');
  });
}
