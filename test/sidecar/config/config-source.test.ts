import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';

import { systemClock } from '#core/clock.ts';
import type { SidecarConfig } from '#core/config/sidecar-config.ts';
import { createLogger } from '#core/telemetry/log.ts';
import { ConfigSource } from '#sidecar/config/config-source.ts';
import { LAST_GOOD_FILE, lastGoodStore } from '#sidecar/config/last-good-store.ts';
import {
  KubeletVolume,
  serverConfig,
  sidecarConfig,
  writePlainConfig,
} from '#test/support/sidecar-config.ts';

/** A config directory, a state directory, and one source at a time on them. */
class Bench {
  readonly root: string;
  readonly directory: string;
  readonly stateDirectory: string;
  readonly accepted: SidecarConfig[] = [];
  readonly lines: Record<string, unknown>[] = [];
  #sources: ConfigSource[] = [];
  #waiters: (() => void)[] = [];

  private constructor(root: string) {
    this.root = root;
    this.directory = join(root, 'config');
    this.stateDirectory = join(root, 'state');
  }

  static async open(): Promise<Bench> {
    const bench = new Bench(await mkdtemp(join(tmpdir(), 'fairlead-config-')));
    await mkdir(bench.directory);
    return bench;
  }

  source(): ConfigSource {
    const write = (line: string): void => {
      this.lines.push(JSON.parse(line) as Record<string, unknown>);
      this.#wake();
    };
    const source = new ConfigSource({
      directory: this.directory,
      rules: { development: true },
      lastGood: lastGoodStore(this.stateDirectory),
      clock: systemClock,
      log: createLogger({ name: 'test', level: 'info', destination: { write } }),
      onAccepted: (config) => {
        this.accepted.push(config);
        this.#wake();
      },
    });
    this.#sources.push(source);
    return source;
  }

  /** Resolves when what a change causes has been seen; the runner's timeout is the only deadline. */
  async until(isReached: () => boolean): Promise<void> {
    while (!isReached()) await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  get users(): string[] {
    return this.accepted.map((config) => config.identity.user.id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#sources.map((source) => source.close()));
    await rm(this.root, { recursive: true, force: true });
  }

  #wake(): void {
    for (const waiter of this.#waiters.splice(0)) waiter();
  }
}

function configFor(user: string): { readonly text: string; readonly revision: string } {
  return sidecarConfig({ identity: { tenant: 'acme', user: { type: 'Static', id: user } } });
}

describe('a plain directory', () => {
  it('is read at the start and watched: each new file is taken over once', async () => {
    await using bench = await Bench.open();
    await writePlainConfig(bench.directory, configFor('a').text);
    const source = bench.source();
    assert.equal(await source.start(), 'running');
    assert.deepEqual(source.state, {
      runningRevision: configFor('a').revision,
      origin: 'directory',
      wantedRevision: configFor('a').revision,
      rejection: undefined,
    });
    await writePlainConfig(bench.directory, configFor('b').text);
    await bench.until(() => bench.users.length === 2);
    await writePlainConfig(bench.directory, configFor('c').text);
    await bench.until(() => bench.users.length === 3);
    assert.deepEqual(bench.users, ['a', 'b', 'c']);
  });

  it('with an unchanged revision is a no-op, whatever the bytes', async () => {
    await using bench = await Bench.open();
    await writePlainConfig(bench.directory, configFor('a').text);
    const source = bench.source();
    await source.start();
    await writePlainConfig(bench.directory, JSON.stringify(JSON.parse(configFor('a').text)));
    await source.check();
    assert.deepEqual(bench.users, ['a']);
  });

  it('with a wrong file keeps the running configuration, says why, and recovers', async () => {
    await using bench = await Bench.open();
    await writePlainConfig(bench.directory, configFor('a').text);
    const source = bench.source();
    await source.start();
    const wrong = sidecarConfig({ servers: [serverConfig('desk'), serverConfig('desk')] });
    await writePlainConfig(bench.directory, wrong.text);
    await source.check();
    assert.equal(source.state.runningRevision, configFor('a').revision);
    assert.equal(source.state.wantedRevision, wrong.revision);
    assert.deepEqual(
      source.state.rejection?.issues.map(({ path }) => path),
      ['servers[1].alias'],
    );
    const refusal = bench.lines.find((line) => line.error_code === 'CONFIG_INVALID');
    assert.equal(refusal?.level, 'error');
    assert.ok(Array.isArray(refusal?.issues));
    assert.equal(
      await readFile(join(bench.stateDirectory, LAST_GOOD_FILE), 'utf8'),
      configFor('a').text,
    );
    // Looking again at the same wrong file says nothing new.
    await source.check();
    assert.equal(bench.lines.filter((line) => line.error_code === 'CONFIG_INVALID').length, 1);
    await writePlainConfig(bench.directory, configFor('a').text);
    await source.check();
    assert.equal(source.state.rejection, undefined);
    assert.deepEqual(bench.users, ['a']);
  });

  it('with a half-written file waits for the rest and reports nothing', async () => {
    await using bench = await Bench.open();
    await writePlainConfig(bench.directory, configFor('a').text);
    const source = bench.source();
    await source.start();
    const { text } = configFor('b');
    await writeFile(join(bench.directory, 'config.json'), text.slice(0, 100));
    const check = source.check();
    await writeFile(join(bench.directory, 'config.json'), text);
    await check;
    await source.check();
    assert.deepEqual(bench.users, ['a', 'b']);
    assert.ok(!bench.lines.some((line) => line.error_code === 'CONFIG_INVALID'));
  });

  it('whose file vanishes keeps running and says so', async () => {
    await using bench = await Bench.open();
    await writePlainConfig(bench.directory, configFor('a').text);
    const source = bench.source();
    await source.start();
    await rm(join(bench.directory, 'config.json'));
    await source.check();
    assert.equal(source.state.rejection?.code, 'CONFIG_UNREADABLE');
    assert.equal(source.state.runningRevision, configFor('a').revision);
    await writePlainConfig(bench.directory, configFor('b').text);
    await bench.until(() => bench.users.length === 2);
  });
});

describe("a kubelet's volume", () => {
  it('is read through one resolved ..data, over many swaps, without a half or mixed read', async () => {
    await using bench = await Bench.open();
    const volume = new KubeletVolume(bench.directory);
    await volume.swap(configFor('0').text);
    const source = bench.source();
    assert.equal(await source.start(), 'running');
    const swaps = 20;
    for (let count = 1; count <= swaps; count += 1) {
      const check = source.check();
      await volume.swap(configFor(String(count)).text);
      await check;
    }
    await bench.until(() => bench.users.at(-1) === String(swaps));
    const numbers = bench.users.map(Number);
    assert.deepEqual(
      numbers,
      [...numbers].sort((a, b) => a - b),
    );
    assert.equal(new Set(numbers).size, numbers.length);
    assert.ok(!bench.lines.some((line) => line.level === 'error'), JSON.stringify(bench.lines));
  });

  it('is noticed by the watch alone', async () => {
    await using bench = await Bench.open();
    const volume = new KubeletVolume(bench.directory);
    await volume.swap(configFor('a').text);
    await bench.source().start();
    await volume.swap(configFor('b').text);
    await bench.until(() => bench.users.at(-1) === 'b');
    await volume.swap(configFor('c').text);
    await bench.until(() => bench.users.at(-1) === 'c');
  });
});

describe('the last good configuration', () => {
  it('is kept for this user only, after acceptance only, and replaced as a whole', async () => {
    await using bench = await Bench.open();
    await writePlainConfig(bench.directory, configFor('a').text);
    const source = bench.source();
    await source.start();
    const path = join(bench.stateDirectory, LAST_GOOD_FILE);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    await writePlainConfig(bench.directory, '{"version":');
    await source.check();
    assert.equal(await readFile(path, 'utf8'), configFor('a').text);
    await writePlainConfig(bench.directory, configFor('b').text);
    await source.check();
    assert.equal(await readFile(path, 'utf8'), configFor('b').text);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
  });

  it('runs after a restart with a wrong, an empty or a missing directory, and says so', async () => {
    await using bench = await Bench.open();
    await writePlainConfig(bench.directory, configFor('a').text);
    await bench.source().start();
    const breakages = [
      () => writePlainConfig(bench.directory, '{}'),
      () => rm(join(bench.directory, 'config.json')),
      () => rm(bench.directory, { recursive: true }),
    ];
    for (const breakage of breakages) {
      await breakage();
      const restarted = bench.source();
      assert.equal(await restarted.start(), 'running');
      assert.equal(restarted.state.origin, 'last-good');
      assert.equal(restarted.state.runningRevision, configFor('a').revision);
      assert.ok(restarted.state.rejection);
      assert.match(String(bench.lines.at(-1)?.msg), /last good configuration from disk/);
      await restarted.close();
    }
  });

  it('is not run when it is wrong itself', async () => {
    await using bench = await Bench.open();
    await mkdir(bench.stateDirectory);
    await writeFile(
      join(bench.stateDirectory, LAST_GOOD_FILE),
      configFor('a').text.replace('acme', 'evil'),
    );
    const source = bench.source();
    assert.equal(await source.start(), 'waiting');
    assert.equal(bench.accepted.length, 0);
  });

  it('that cannot be written is a warning, not a refusal', async () => {
    await using bench = await Bench.open();
    await writeFile(bench.stateDirectory, 'a file where the directory should be');
    await writePlainConfig(bench.directory, configFor('a').text);
    assert.equal(await bench.source().start(), 'running');
    assert.ok(bench.lines.some((line) => line.level === 'warn'));
  });
});

describe('a start without any configuration', () => {
  it('waits when the directory is there, and runs when a configuration comes', async () => {
    await using bench = await Bench.open();
    const source = bench.source();
    assert.equal(await source.start(), 'waiting');
    assert.equal(source.state.rejection?.code, 'CONFIG_UNREADABLE');
    await new KubeletVolume(bench.directory).swap(configFor('a').text);
    await bench.until(() => bench.users.length === 1);
    assert.equal(source.state.rejection?.code, undefined);
  });

  it('says that the directory cannot be used when it is missing or a file', async () => {
    await using bench = await Bench.open();
    await rm(bench.directory, { recursive: true });
    assert.deepEqual(await bench.source().start(), { unusableDirectory: 'does not exist' });
    await writeFile(bench.directory, '');
    assert.equal(typeof (await bench.source().start()), 'object');
  });
});
