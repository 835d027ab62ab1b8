// The image of pod sandboxes: one static program that sleeps and reaps, as an archive that
// containerd imports. Built with Go, which building Kubernetes needs too.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { writeImageArchive } from '#test/support/container-image/image-archive.ts';

import { runCommand } from './run-command.ts';

export const PAUSE_IMAGE = 'localhost/pause:1';

const SOURCE = `package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for pid := 1; pid > 0; {
			pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
	}
}
`;

/** Returns the path of the archive, in `directory`. */
export async function buildPauseImage(directory: string): Promise<string> {
  const [source, program] = [join(directory, 'pause.go'), join(directory, 'pause')];
  await writeFile(source, SOURCE);
  const build = ['go', 'build', '-trimpath', '-ldflags', '-s -w', '-o', program, source];
  await runCommand(['env', 'CGO_ENABLED=0', 'GOFLAGS=-buildvcs=false', ...build]);
  const archive = join(directory, 'pause.tar');
  await writeImageArchive(archive, {
    name: PAUSE_IMAGE,
    files: [{ source: program, target: '/pause', mode: 0o755 }],
    entrypoint: ['/pause'],
    user: '65535:65535',
  });
  return archive;
}
