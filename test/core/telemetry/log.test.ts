import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { FairleadError } from '#core/errors.ts';
import { createLogger } from '#core/telemetry/log.ts';
import type { Logger, LogLevel } from '#core/telemetry/log.ts';
import { createSecretRegistry } from '#core/telemetry/redact.ts';
import { VERSION } from '#core/version.ts';
import { assertNoLeak, plantSecrets } from '#test/support/canary.ts';

interface Captured {
  readonly log: Logger;
  readonly output: () => string;
  readonly lines: () => readonly Readonly<Record<string, unknown>>[];
}

function capture(level: LogLevel = 'info', secrets = createSecretRegistry()): Captured {
  let written = '';
  const log = createLogger({
    name: 'fairlead-test',
    level,
    secrets,
    destination: { write: (line) => void (written += line) },
  });
  return {
    log,
    output: () => written,
    lines: () =>
      written
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Record<string, unknown>),
  };
}

suite('the log', () => {
  test('a line is one JSON object with level, time, service and version', () => {
    const { log, output, lines } = capture();
    log.info({ call_id: 'c1' }, 'call');
    const [line] = lines();
    assert.ok(line !== undefined && output().endsWith('\n'));
    const { time, ...rest } = line;
    assert.deepEqual(rest, {
      level: 'info',
      service: 'fairlead-test',
      version: VERSION,
      call_id: 'c1',
      msg: 'call',
    });
    assert.match(String(time), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  });

  test('lines below the level are not written', () => {
    const { log, lines } = capture('warn');
    log.info('no');
    log.warn('yes');
    assert.deepEqual(
      lines().map(({ msg }) => msg),
      ['yes'],
    );
  });

  test('an error of ours shows its code, message and detail', () => {
    const { log, lines } = capture();
    log.warn(
      { err: new FairleadError('SERVER_BUSY', { logDetail: 'queue of 100 is full' }) },
      'refused',
    );
    assert.deepEqual(lines()[0]?.['err'], {
      name: 'FairleadError',
      code: 'SERVER_BUSY',
      message: new FairleadError('SERVER_BUSY').message,
      detail: 'queue of 100 is full',
    });
  });

  test('a foreign error shows its class and code, and nothing that it carries', () => {
    const planted = plantSecrets();
    const foreign = Object.assign(
      new TypeError(`GET https://h/?code=${planted.authorizationCode.value}`),
      {
        code: 'ECONNRESET',
        config: { headers: { authorization: `Bearer ${planted.accessToken.value}` } },
        body: planted.refreshToken.value,
        cause: new Error(planted.clientSecret.value, { cause: new Error(planted.sessionId.value) }),
      },
    );
    const spellings: readonly ((log: Logger) => void)[] = [
      (log) => log.error(foreign),
      (log) => log.error(foreign, 'it broke'),
      (log) => log.error({ err: foreign }),
      (log) => log.error({ err: foreign }, 'it broke'),
      (log) => log.error({ error: foreign }, 'it broke'),
      (log) => log.child({ err: foreign }).error('it broke'),
      (log) =>
        log.error({ err: new FairleadError('SERVER_UNAVAILABLE', { cause: foreign }) }, 'it broke'),
    ];
    for (const level of ['info', 'debug'] as const) {
      for (const spelling of spellings) {
        const { log, output } = capture(level);
        spelling(log);
        assert.match(output(), /TypeError/);
        assert.match(output(), /ECONNRESET/);
        assertNoLeak(output(), planted);
      }
    }
  });

  test('frames of the stack show at level debug only', () => {
    for (const [level, expected] of [
      ['debug', true],
      ['info', false],
    ] as const) {
      const { log, output } = capture(level);
      log.error({ err: new Error('boom') }, 'it broke');
      assert.equal(output().includes('log.test.ts'), expected);
      assert.ok(!output().includes('boom'));
    }
  });

  test('a chain of causes that bites its own tail is cut', () => {
    const { log, lines } = capture();
    const first = new Error('a');
    first.cause = new Error('b', { cause: first });
    log.error({ err: first }, 'loop');
    assert.equal(lines().length, 1);
  });

  test('whatever is logged by mistake, secrets that look like secrets do not get out (R102)', () => {
    const planted = plantSecrets();
    const secrets = createSecretRegistry();
    for (const live of [planted.argument, planted.result]) secrets.add(live.value);
    const { log, output } = capture('debug', secrets);
    const headers = {
      Authorization: `Bearer ${planted.accessToken.value}`,
      'Mcp-Session-Id': planted.sessionId.value,
      cookie: `a=${planted.clientSecret.value}; b=${planted.clientSecret.value}`,
    };
    log.info({ request: { deep: { deeper: { deepest: { headers } } } } }, 'sent');
    log.info({ rawHeaders: Object.entries(headers).flat() }, 'sent');
    log.info(
      `token response ${JSON.stringify({ access_token: planted.accessToken.value, refresh_token: planted.refreshToken.value })}`,
    );
    log.info(`callback http://127.0.0.1:3030/callback?code=${planted.authorizationCode.value}`);
    log
      .child({ body: `client_secret=${planted.clientSecret.value}` })
      .warn('posted %s', `refresh_token=${planted.refreshToken.value}`);
    log.info({ live: { value: planted.argument.value } }, planted.result.value);
    assert.equal(output().trimEnd().split('\n').length, 6);
    assertNoLeak(output(), planted);
  });
});

suite('the log on stdout', () => {
  const program = (body: string): string =>
    `import { createLogger } from '#core/telemetry/log.ts';
     const log = createLogger({ name: 'x', level: 'info' });
     ${body}`;

  async function run(
    body: string,
  ): Promise<{ readonly code: number | null; readonly lines: readonly string[] }> {
    const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', program(body)], {
      cwd: fileURLToPath(new URL('../../..', import.meta.url)),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const output = text(child.stdout);
    const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
    return { code, lines: (await output).trimEnd().split('\n') };
  }

  test('no line is lost when the process exits at once', async () => {
    const { code, lines } = await run(
      "for (let i = 0; i < 5000; i += 1) log.info({ i }, 'line'); process.exit(3);",
    );
    assert.equal(code, 3);
    assert.equal(lines.length, 5000);
    assert.equal((JSON.parse(lines.at(-1) ?? '') as { readonly i: number }).i, 4999);
  });

  test('no line is lost when the process ends by itself or by an exception', async () => {
    const { lines } = await run("for (let i = 0; i < 100; i += 1) log.info({ i }, 'line');");
    assert.equal(lines.length, 100);
    const crashed = await run(
      "process.on('uncaughtException', () => process.exit(1)); for (let i = 0; i < 100; i += 1) log.info({ i }, 'line'); throw new Error('crash');",
    );
    assert.deepEqual([crashed.code, crashed.lines.length], [1, 100]);
  });
});
