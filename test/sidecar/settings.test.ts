import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { HELP, readSettings, sizeThreadPool } from '#sidecar/settings.ts';

const NEEDED = ['--config-dir', '/c'];

function settingsOf(argv: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const parsed = readSettings([...NEEDED, ...argv], env);
  if (parsed.kind !== 'run') assert.fail(JSON.stringify(parsed));
  return parsed.settings;
}

function problemsOf(argv: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const parsed = readSettings(argv, env);
  if (parsed.kind !== 'bad') assert.fail(JSON.stringify(parsed));
  return parsed.problems;
}

describe('start options', () => {
  it('have safe defaults', () => {
    assert.deepEqual(settingsOf([]), {
      configDirectory: '/c',
      stateDirectory: undefined,
      agentPort: undefined,
      healthPort: 7318,
      healthHost: '0.0.0.0',
      isDevelopment: false,
      isNativeSidecar: false,
      exitsWithParent: false,
      logLevel: undefined,
      fingerprintKeyFile: undefined,
      proxyClientDirectory: undefined,
    });
  });

  it('come from flags, in both spellings', () => {
    const argv = [
      '--state-dir=/s',
      '--port',
      '0',
      '--health-port=8080',
      '--health-host',
      '::',
      '--development',
      '--native-sidecar',
      '--exit-with-parent',
      '--log-level',
      'warn',
      '--proxy-client-dir',
      '/p',
    ];
    assert.deepEqual(settingsOf(argv), {
      configDirectory: '/c',
      stateDirectory: '/s',
      agentPort: 0,
      healthPort: 8080,
      healthHost: '::',
      isDevelopment: true,
      isNativeSidecar: true,
      exitsWithParent: true,
      logLevel: 'warn',
      fingerprintKeyFile: '/s/fingerprint.key',
      proxyClientDirectory: '/p',
    });
  });

  it('come from variables where no flag says otherwise', () => {
    const env = {
      FAIRLEAD_CONFIG_DIR: '/env',
      FAIRLEAD_PORT: '9000',
      FAIRLEAD_HEALTH_PORT: '9001',
      FAIRLEAD_DEVELOPMENT: 'true',
      FAIRLEAD_NATIVE_SIDECAR: '0',
      FAIRLEAD_LOG_LEVEL: '',
    };
    const settings = settingsOf(['--health-port', '9002'], env);
    assert.deepEqual(
      [
        settings.configDirectory,
        settings.agentPort,
        settings.healthPort,
        settings.isDevelopment,
        settings.isNativeSidecar,
        settings.logLevel,
      ],
      ['/c', 9000, 9002, true, false, undefined],
    );
  });

  it('bind health to the pod address when it is known, to loopback at a desk', () => {
    assert.equal(settingsOf([], { POD_IP: '10.1.2.3' }).healthHost, '10.1.2.3');
    assert.equal(settingsOf(['--development']).healthHost, '127.0.0.1');
    assert.equal(
      settingsOf(['--health-host', '127.0.0.2'], { POD_IP: '10.1.2.3' }).healthHost,
      '127.0.0.2',
    );
  });

  it('are not confused by the variables that Kubernetes sets for a Service of the same name', () => {
    const settings = settingsOf([], {
      FAIRLEAD_PORT: 'tcp://10.0.0.1:80',
      FAIRLEAD_HEALTH_PORT: 'tcp://10.0.0.2:81',
    });
    assert.deepEqual([settings.agentPort, settings.healthPort], [undefined, 7318]);
  });

  it('are refused with all problems at once', () => {
    const problems = problemsOf(
      [
        '--port',
        '70000',
        '--health-port',
        'x',
        '--log-level',
        'loud',
        '--unknown',
        '-x',
        'word',
        '--development=yes',
      ],
      { FAIRLEAD_EXIT_WITH_PARENT: 'maybe' },
    );
    const patterns = [
      /--config-dir .*required/,
      /--port .*70000/,
      /--health-port .*"x"/,
      /--log-level .*"loud"/,
      /--unknown/,
      /-x/,
      /"word"/,
      /--development takes no value/,
      /FAIRLEAD_EXIT_WITH_PARENT/,
    ];
    for (const pattern of patterns)
      assert.equal(problems.filter((problem) => pattern.test(problem)).length, 1, String(pattern));
    assert.equal(problems.length, patterns.length, problems.join('\n'));
  });

  it('that need a value are refused without one', () => {
    assert.deepEqual(problemsOf(['--config-dir']), [
      '--config-dir needs a value',
      '--config-dir (or FAIRLEAD_CONFIG_DIR) is required',
    ]);
    assert.ok(problemsOf([...NEEDED, '--port=']).includes('--port needs a value'));
  });

  it('are explained on request, with examples, whatever else is there', () => {
    assert.equal(readSettings(['--nonsense', '-h'], {}).kind, 'help');
    for (const word of [
      '--config-dir',
      '--state-dir',
      '--port',
      '--health-port',
      '--health-host',
      '--development',
      '--native-sidecar',
      '--exit-with-parent',
      '--log-level',
      '--fingerprint-key-file',
      'Examples:',
      'Exit codes:',
    ]) {
      assert.ok(HELP.includes(word), word);
    }
  });

  it('leave the size of the thread pool to the environment, where it says one', () => {
    const given = { UV_THREADPOOL_SIZE: '8' };
    const empty: Record<string, string> = {};
    for (const env of [given, empty]) sizeThreadPool(env);
    assert.deepEqual([given, empty], [{ UV_THREADPOOL_SIZE: '8' }, { UV_THREADPOOL_SIZE: '64' }]);
  });
});
