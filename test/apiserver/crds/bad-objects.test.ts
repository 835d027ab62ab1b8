// The one table of bad objects against a real API server: refused, and the field of the row is
// blamed. Nothing is stored.

import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';

import { applyCrds } from '#test/support/apply-crds.ts';
import { BAD_OBJECTS, badObject } from '#test/support/bad-objects.ts';
import { startControlPlane } from '#test/support/control-plane/start-control-plane.ts';
import { GOOD_BINDING, GOOD_OAUTH_SERVER, GOOD_SERVER } from '#test/support/good-objects.ts';
import { ObjectClient, blamedFields } from '#test/support/object-client.ts';

suite('the API server on the bad objects', async () => {
  const owned = new AsyncDisposableStack();
  after(() => owned.disposeAsync());
  const plane = owned.use(await startControlPlane({ auditLog: false }));
  await applyCrds(plane);
  const client = owned.use(await ObjectClient.open(plane.kubeconfigPath));

  for (const object of [GOOD_SERVER, GOOD_OAUTH_SERVER, GOOD_BINDING]) {
    test(`accepts the good ${object.kind} ${object.metadata.name} (R7)`, async () => {
      const { status, body } = await client.tryCreate(object);
      assert.equal(status, 201, body.message);
    });
  }

  for (const row of BAD_OBJECTS) {
    test(`refuses ${row.title} (${row.proves})`, async () => {
      const answer = await client.tryCreate(badObject(row));
      if (row.isUnknownField === true) {
        assert.equal(answer.status, 400);
        assert.ok(
          answer.body.message?.includes(`unknown field "${row.path}"`),
          answer.body.message,
        );
      } else {
        assert.equal(answer.status, 422, answer.body.message);
        assert.ok(blamedFields(answer).includes(row.path), answer.body.message);
      }
    });
  }

  test('and nothing of it was stored', async () => {
    const { stdout } = await plane.kubectl(['get', 'fairlead', '--all-namespaces', '-o', 'name']);
    assert.equal(stdout, '');
  });
});
