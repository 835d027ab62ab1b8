// Runs one local program and ends it, and whatever it started, as soon as our standard input
// closes: the kernel closes it however our parent dies, so nothing of `fairlead dev` lingers.

import { spawn } from 'node:child_process';

import { systemClock } from '#core/clock.ts';

const KILL_AFTER_MS = 3_000;

/** `argv`: the program and its arguments. Resolves with its exit code. */
export function guardCommand(argv: readonly string[]): Promise<number> {
  const [program, ...args] = argv;
  if (program === undefined) return Promise.resolve(64);
  // A process group of its own: a signal to the group reaches grandchildren too.
  const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'], detached: true });
  const signalGroup = (signal: NodeJS.Signals): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal);
    } catch {
      // It has ended already.
    }
  };
  const stop = (): void => {
    signalGroup('SIGTERM');
    systemClock.setTimer(KILL_AFTER_MS, () => signalGroup('SIGKILL'), { unref: true });
  };
  process.stdin.on('end', stop).on('error', stop).resume();
  process.on('SIGTERM', stop).on('SIGINT', stop);
  return new Promise((resolve) => {
    child.once('error', (error) => {
      process.stderr.write(`${program}: ${error.message}\n`);
      resolve(127);
    });
    child.once('exit', (code) => {
      signalGroup('SIGKILL');
      process.stdin.destroy();
      resolve(code ?? 1);
    });
  });
}
