import assert from 'node:assert/strict';
import { test } from 'node:test';

import { InputRounds } from '#sidecar/relay/input-rounds.ts';

test('rounds_are_counted_along_the_chain_of_request_states (R87)', () => {
  const rounds = new InputRounds();
  assert.equal(rounds.next('p', undefined, 's1'), 1);
  assert.equal(rounds.next('p', 's1', 's2'), 2);
  assert.equal(rounds.next('p', 's2', 's3'), 3);
  assert.equal(rounds.next('p', undefined, 't1'), 1);
  assert.equal(rounds.next('other', 's3', 's4'), 1, 'a state of another partition is unknown here');
});

test('a_server_that_repeats_its_state_is_still_counted', () => {
  const rounds = new InputRounds();
  for (let round = 1; round <= 12; round += 1) {
    assert.equal(rounds.next('p', round === 1 ? undefined : 'same', 'same'), round);
  }
});
