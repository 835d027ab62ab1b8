// `fairlead sidecar`: settings, build, start, wait for a signal, drain, exit code. Loads what it
// needs only after the settings are known to be good, so that help and mistakes cost nothing.

import { systemClock } from '#core/clock.ts';
import { ERRORS, FairleadError } from '#core/errors.ts';
import { stopSignal } from '#core/stop-signal.ts';

import { HELP, readSettings, sizeThreadPool } from './settings.ts';
import type { SidecarSettings } from './settings.ts';
import type { SidecarOptions } from './sidecar.ts';

const EXIT = { ok: 0, failure: 1, usage: 64, portInUse: 69, config: 78 } as const;

export interface MainParts {
  /** In place of the real servers, for tests of a whole process. */
  readonly openUpstreams?: SidecarOptions['openUpstreams'];
}

export async function main(argv: readonly string[], parts: MainParts = {}): Promise<number> {
  sizeThreadPool();
  const parsed = readSettings(argv);
  switch (parsed.kind) {
    case 'help':
      process.stdout.write(HELP);
      return EXIT.ok;
    case 'bad':
      for (const problem of parsed.problems) say(problem);
      say(`${ERRORS.USAGE.message} ${ERRORS.USAGE.next}`);
      return EXIT.usage;
    case 'run':
      return run(parsed.settings, parts);
    default:
      return parsed satisfies never;
  }
}

async function run(settings: SidecarSettings, parts: MainParts): Promise<number> {
  const stop = waitForStop(settings);
  const [
    { createLogger, openLogOutput },
    { createCanonicalLog },
    { createSecretRegistry },
    { Sidecar },
    openUpstreams,
  ] = await Promise.all([
    import('#core/telemetry/log.ts'),
    import('#core/telemetry/canonical-log.ts'),
    import('#core/telemetry/redact.ts'),
    import('./sidecar.ts'),
    parts.openUpstreams ?? import('./upstreams.ts').then((module) => module.openUpstreams),
  ]);
  const name = 'fairlead-sidecar';
  const [destination, secrets] = [openLogOutput(), createSecretRegistry()];
  const log = createLogger({ name, level: settings.logLevel ?? 'info', destination, secrets });
  const canonicalLog = createCanonicalLog({ name, destination, clock: systemClock, secrets });
  // One request's bug must not end the requests of others.
  process.on('uncaughtException', (err) => log.error({ err, event: 'bug' }, 'uncaught exception'));
  process.on('unhandledRejection', (err) =>
    log.error({ err, event: 'bug' }, 'unhandled rejection'),
  );
  const sidecar = new Sidecar({ settings, clock: systemClock, log, canonicalLog, openUpstreams });
  try {
    await sidecar.start();
  } catch (error) {
    await sidecar.close();
    if (settings.exitsWithParent) process.stdin.destroy();
    log.fatal({ err: error }, 'the sidecar cannot start');
    say(
      error instanceof FairleadError
        ? error.message
        : 'The sidecar cannot start; the log has the reason.',
    );
    return exitCodeOf(error);
  }
  await stop;
  await sidecar.drain();
  return EXIT.ok;
}

/** At a signal or, when asked for, at the end of standard input, which is let go so that the process can end. */
function waitForStop({ exitsWithParent }: SidecarSettings): Promise<void> {
  const parentGone = new AbortController();
  const stop = stopSignal({
    clock: systemClock,
    exitCode: EXIT.failure,
    alsoAt: parentGone.signal,
  });
  if (exitsWithParent) {
    const onGone = (): void => parentGone.abort();
    process.stdin.on('end', onGone).on('close', onGone).on('error', onGone).resume();
  }
  return new Promise((resolve) => {
    stop.addEventListener('abort', () => {
      if (exitsWithParent) process.stdin.destroy();
      resolve();
    });
  });
}

function exitCodeOf(error: unknown): number {
  if (!(error instanceof FairleadError)) return EXIT.failure;
  if (error.code === 'PORT_IN_USE') return EXIT.portInUse;
  return error.code === 'CONFIG_UNREADABLE' ? EXIT.config : EXIT.failure;
}

function say(sentence: string): void {
  process.stderr.write(`fairlead sidecar: ${sentence}\n`);
}
