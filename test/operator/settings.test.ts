import assert from 'node:assert/strict';
import { test } from 'node:test';

import { type OperatorSettings, readSettings } from '#operator/settings.ts';

type Environment = Readonly<Record<string, string | undefined>>;

function settings(argv: readonly string[], env: Environment = {}): OperatorSettings {
  const parsed = readSettings(argv, env);
  assert.ok(parsed.kind === 'run', JSON.stringify(parsed));
  return parsed.settings;
}

function problems(argv: readonly string[], env: Environment = {}): readonly string[] {
  const parsed = readSettings(argv, env);
  assert.ok(parsed.kind === 'bad', JSON.stringify(parsed));
  return parsed.problems;
}

test('without options the operator elects a leader, watches everything and takes the known ports', () => {
  const { instance, ...rest } = settings([]);
  assert.notEqual(instance, '');
  assert.deepEqual(rest, {
    kubeconfigPath: undefined,
    watchNamespaces: [],
    electsLeader: true,
    leaseNamespace: undefined,
    healthPort: 8081,
    metricsPort: 8080,
    logLevel: 'info',
  });
});

test('flags win over variables, and variables over defaults', () => {
  const env = {
    FAIRLEAD_LEASE_NAMESPACE: 'from-env',
    FAIRLEAD_HEALTH_PORT: '9001',
    FAIRLEAD_LEADER_ELECT: 'false',
    FAIRLEAD_WATCH_NAMESPACES: 'a, b,a,',
    POD_NAME: 'fairlead-0',
  };
  const read = settings(['--health-port', '9002', '--leader-elect'], env);
  assert.equal(read.leaseNamespace, 'from-env');
  assert.equal(read.healthPort, 9002);
  assert.equal(read.electsLeader, true);
  assert.deepEqual(read.watchNamespaces, ['a', 'b']);
  assert.equal(read.instance, 'fairlead-0');
  assert.equal(settings([], env).electsLeader, false);
  assert.equal(settings(['--no-leader-elect']).electsLeader, false);
});

test('all problems are told at once', () => {
  const argv = ['--health-port', '70000', '--log-level', 'loud', '--watch-namespaces', 'Team_A,ok'];
  const env = { FAIRLEAD_LEADER_ELECT: 'maybe', FAIRLEAD_METRICS_PORT: '-1' };
  const found = problems(argv, env);
  assert.equal(found.length, 5, JSON.stringify(found));
  for (const word of [/health-port/, /log-level/, /Team_A/, /LEADER_ELECT/, /metrics-port/])
    assert.ok(
      found.some((problem) => word.test(problem)),
      String(word),
    );
});

test('an unknown option is a problem, and help is no run', () => {
  assert.match(problems(['--leader'])[0] ?? '', /--leader/);
  assert.equal(readSettings(['--help'], {}).kind, 'help');
});
