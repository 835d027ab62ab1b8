// What the kernel says about a process and all its descendants: CPU time, memory, and whether
// they, and nobody else, answer on a port. Reads /proc only; it never signals anything.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** The process and all its descendants. */
export function readProcessTree(rootPid: number): ReadonlySet<number> {
  const parents = new Map<number, number>();
  for (const pid of listNumbers('/proc')) {
    const stat = readProcText(`/proc/${pid}/stat`);
    // The name in parentheses may hold spaces; the parent is the second field after it.
    const parent = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1];
    if (parent !== undefined) parents.set(pid, Number(parent));
  }
  const tree = new Set([rootPid]);
  for (let size = 0; size < tree.size; ) {
    size = tree.size;
    for (const [pid, parent] of parents) if (tree.has(parent)) tree.add(pid);
  }
  return tree;
}

/** Nanoseconds on a CPU, user and system, of all threads. */
export function readCpuNs(pids: Iterable<number>): number {
  let sum = 0;
  for (const pid of pids) {
    for (const thread of listNumbers(`/proc/${pid}/task`)) {
      sum += Number(readProcText(`/proc/${pid}/task/${thread}/schedstat`).split(' ')[0] ?? 0);
    }
  }
  return sum;
}

/** Resident memory in MiB. Pages that processes of the tree share count once per process. */
export function readRssMib(pids: Iterable<number>): number {
  let kib = 0;
  for (const pid of pids)
    kib += Number(/^VmRSS:\s+(\d+) kB/m.exec(readProcText(`/proc/${pid}/status`))?.[1] ?? 0);
  return kib / 1024;
}

/** All processes that hold the listening socket of a port. */
export function readListenerPids(port: number): readonly number[] {
  const sockets = new Set<string>();
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const line of readProcText(table).split('\n')) {
      const [, local, , state, , , , , , inode] = line.trim().split(/\s+/);
      if (state === '0A' && Number.parseInt(local?.split(':')[1] ?? '', 16) === port)
        sockets.add(`socket:[${inode}]`);
    }
  }
  return listNumbers('/proc').filter((pid) =>
    listNumbers(`/proc/${pid}/fd`).some((fd) => sockets.has(readProcLink(`/proc/${pid}/fd/${fd}`))),
  );
}

/** The cores that this process may use, as taskset writes them: `0-3,8`. */
export function readAllowedCores(): string {
  return /^Cpus_allowed_list:\s*(\S+)/m.exec(readProcText('/proc/self/status'))?.[1] ?? '0';
}

/** A process may end between two reads: it then counts as empty. */
function listNumbers(dir: string): number[] {
  try {
    return readdirSync(dir)
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
    return [];
  }
}

function readProcText(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

function readProcLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
