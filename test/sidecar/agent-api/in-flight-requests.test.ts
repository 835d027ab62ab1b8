import assert from 'node:assert/strict';
import { test } from 'node:test';

import { InFlightRequests } from '#sidecar/agent-api/in-flight-requests.ts';
import type { CancellableRequest } from '#sidecar/agent-api/in-flight-requests.ts';

function requestOf(id: string | number): CancellableRequest {
  return { request: { id }, cancelByAgent() {} };
}

test('requests are known by their id and its type: 1 is not "1"', () => {
  const requests = new InFlightRequests();
  const [number, text] = [requestOf(1), requestOf('1')];
  requests.add(number);
  assert.equal(requests.get('1'), undefined);
  requests.add(text);
  assert.equal(requests.get(1), number);
  assert.equal(requests.get('1'), text);
});

test('whichever ends first leaves the others known', () => {
  for (const order of [
    [0, 1, 2],
    [2, 1, 0],
    [1, 0, 2],
  ]) {
    const requests = new InFlightRequests();
    const all = [requestOf(0), requestOf('1'), requestOf(2)];
    for (const request of all) requests.add(request);
    const left = new Set(all);
    for (const index of order) {
      const request = all[index];
      assert.ok(request);
      requests.delete(request);
      requests.delete(request);
      left.delete(request);
      assert.deepEqual(new Set(requests.values()), left);
      assert.equal(requests.size, left.size);
      assert.equal(requests.get(request.request.id), undefined);
    }
  }
});
