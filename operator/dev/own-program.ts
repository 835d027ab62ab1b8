// How this program starts itself again: from its sources in development, from the bundle otherwise.

export function ownCommand(...args: readonly string[]): {
  readonly program: string;
  readonly args: string[];
} {
  return { program: process.execPath, args: [process.argv[1] ?? '', ...args] };
}
