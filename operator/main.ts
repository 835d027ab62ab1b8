// `fairlead operator`: settings, build, start, wait for a signal, stop in order, exit code. Loads what
// it needs only after the settings are known to be good, so that help and mistakes cost nothing.

import { setFlagsFromString } from 'node:v8';

import { systemClock } from '#core/clock.ts';
import { FairleadError } from '#core/errors.ts';
import { stopSignal } from '#core/stop-signal.ts';
import { createLogger } from '#core/telemetry/log.ts';

import { HELP, type OperatorSettings, readSettings } from './settings.ts';

const EXIT = { ok: 0, failure: 1, usage: 64, portInUse: 69 } as const;

export async function main(argv: readonly string[]): Promise<number> {
  const parsed = readSettings(argv);
  switch (parsed.kind) {
    case 'help':
      process.stdout.write(HELP);
      return EXIT.ok;
    case 'bad':
      for (const problem of parsed.problems)
        process.stderr.write(`fairlead operator: ${problem}\n`);
      process.stderr.write('See "fairlead operator --help".\n');
      return EXIT.usage;
    case 'run':
      return run(parsed.settings);
    default:
      return parsed satisfies never;
  }
}

async function run(settings: OperatorSettings): Promise<number> {
  keepHeapSmall();
  const stop = stopSignal({ clock: systemClock, exitCode: EXIT.failure });
  const stopped = new Promise<'stopped'>((resolve) => {
    stop.addEventListener('abort', () => resolve('stopped'), { once: true });
  });
  const { Operator } = await import('./operator.ts');
  const log = createLogger({ name: 'fairlead-operator', level: settings.logLevel });
  const operator = new Operator({
    settings,
    clock: systemClock,
    log,
    onLost: (reason) => {
      log.error({ event: 'lease-lost', reason }, 'the leader lease is lost');
      // Nothing may be written any more, so nothing is tidied up.
      process.exit(EXIT.failure);
    },
  });
  const failed = operator.run().then(
    () => new Promise<never>(() => {}),
    (error: unknown) => error,
  );
  const end = await Promise.race([stopped, failed]);
  if (end === 'stopped') {
    await operator.stop();
    return EXIT.ok;
  }
  log.fatal({ err: end }, 'the operator cannot run');
  process.stderr.write(`fairlead operator: ${end instanceof Error ? end.message : 'cannot run'}\n`);
  await operator.stop().catch(() => undefined);
  return end instanceof FairleadError && end.code === 'PORT_IN_USE' ? EXIT.portInUse : EXIT.failure;
}

/**
 * A pass over thousands of objects is mostly garbage, which V8 would rather keep than collect on a large
 * machine: twice the memory for a few seconds of processor time in the whole pass.
 */
function keepHeapSmall(): void {
  setFlagsFromString('--optimize-for-size');
}
