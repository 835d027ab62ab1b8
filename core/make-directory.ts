// A directory with those above it. Node's own `recursive` never ends where the system says of an
// existing directory that a new one in it has no parent, as /proc and some mounts do.

import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** Throws the system's error; a directory that is there already is fine. `mode`: of those that are made. */
export function makeDirectory(path: string, mode?: number): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    const code = error instanceof Error ? Reflect.get(error, 'code') : undefined;
    if (code === 'EEXIST' && isDirectory(path)) return;
    const above = dirname(path);
    if (code !== 'ENOENT' || above === path || isDirectory(above)) throw error;
    makeDirectory(above, mode);
    mkdirSync(path, { mode });
  }
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
