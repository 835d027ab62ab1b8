// Keeps the running configuration up to date with the directory: reads, judges, hands over what is
// accepted, and keeps the last good one, in memory and on disk, when the new one is wrong. It never
// hands over a configuration twice, and never anything that was not judged here (design section 4).

import type { Clock } from '#core/clock.ts';
import type { ConfigRules, SidecarConfig } from '#core/config/sidecar-config.ts';
import type { Logger } from '#core/telemetry/log.ts';
import type { ReloadOutcome } from '#core/telemetry/metrics.ts';

import { DirectoryWatch, readConfigText } from './config-directory.ts';
import type { ConfigText } from './config-directory.ts';
import { judgeConfig } from './judge-config.ts';
import type { ConfigRejection, JudgedConfig } from './judge-config.ts';
import type { LastGoodStore } from './last-good-store.ts';

/** How long a writer that is not atomic may take between two writes. */
const HALF_WRITTEN_MS = 300;

export interface ConfigSourceOptions {
  readonly directory: string;
  readonly rules: ConfigRules;
  readonly lastGood: LastGoodStore | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** The configuration that new requests see from now on. */
  readonly onAccepted: (config: SidecarConfig) => void;
  readonly onReload?: (outcome: ReloadOutcome) => void;
}

export type ConfigOrigin = 'directory' | 'last-good';

/** What the status page says about the configuration. */
export interface ConfigState {
  readonly runningRevision: string | undefined;
  readonly origin: ConfigOrigin | undefined;
  /** Of the file as it is now, when it says one. */
  readonly wantedRevision: string | undefined;
  /** Why what the directory holds is not what runs. */
  readonly rejection: ConfigRejection | undefined;
}

export type StartOutcome = 'running' | 'waiting' | { readonly unusableDirectory: string };

type Seen =
  | { readonly text: string; readonly judged: JudgedConfig }
  | Extract<ConfigText, { kind: 'unreadable' }>;

export class ConfigSource {
  readonly #options: ConfigSourceOptions;
  readonly #watch: DirectoryWatch;
  #state: ConfigState = {
    runningRevision: undefined,
    origin: undefined,
    wantedRevision: undefined,
    rejection: undefined,
  };
  #lastText: string | undefined;
  #unusableDirectory: string | undefined;
  #checking: Promise<void> | undefined;
  #isCheckWanted = false;
  #isClosed = false;

  constructor(options: ConfigSourceOptions) {
    this.#options = options;
    this.#watch = new DirectoryWatch(options.directory, options.clock, () => void this.check());
  }

  get state(): ConfigState {
    return this.#state;
  }

  /** Reads once, falls back to the last good configuration, and goes on watching. */
  async start(): Promise<StartOutcome> {
    this.#watch.start();
    await this.check();
    if (this.#state.runningRevision === undefined) await this.#runLastGood();
    if (this.#state.runningRevision !== undefined) return 'running';
    return this.#unusableDirectory === undefined
      ? 'waiting'
      : { unusableDirectory: this.#unusableDirectory };
  }

  /** Looks now; calls while a look is under way lead to one more look. */
  check(): Promise<void> {
    this.#isCheckWanted = true;
    this.#checking ??= this.#checkUntilSettled().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#watch.close();
    await this.#checking;
  }

  async #checkUntilSettled(): Promise<void> {
    while (this.#isCheckWanted && !this.#isClosed) {
      this.#isCheckWanted = false;
      await this.#take(await this.#look());
    }
  }

  /** A text that may be half written is read again before it counts. */
  async #look(): Promise<Seen> {
    const { directory, rules, clock } = this.#options;
    for (let previous: string | undefined; ; ) {
      const read = await readConfigText(directory);
      if (read.kind === 'unreadable') return read;
      const judged = judgeConfig(read.text, rules);
      const isSettled =
        judged.kind === 'accepted' ||
        !judged.mayBeHalfWritten ||
        read.text === previous ||
        read.text === this.#lastText;
      if (isSettled) return { text: read.text, judged };
      previous = read.text;
      await clock.sleep(HALF_WRITTEN_MS);
    }
  }

  async #take(seen: Seen): Promise<void> {
    if (this.#isClosed) return;
    this.#unusableDirectory =
      'kind' in seen && seen.what === 'directory' ? seen.message : undefined;
    if ('kind' in seen) {
      const message = `${seen.what === 'file' ? 'config.json' : 'the directory'} ${seen.message}`;
      this.#reject({ code: 'CONFIG_UNREADABLE', issues: [{ path: '', message }] }, undefined);
      this.#lastText = undefined;
      return;
    }
    if (seen.text === this.#lastText) return;
    this.#lastText = seen.text;
    if (seen.judged.kind === 'rejected') this.#reject(seen.judged.rejection, seen.judged.revision);
    else await this.#accept(seen.judged.config, seen.text);
  }

  async #accept(config: SidecarConfig, text: string): Promise<void> {
    const { log, onReload } = this.#options;
    const isUnchanged = config.revision === this.#state.runningRevision;
    if (!isUnchanged) this.#options.onAccepted(config);
    this.#state = {
      runningRevision: config.revision,
      origin: 'directory',
      wantedRevision: config.revision,
      rejection: undefined,
    };
    onReload?.(isUnchanged ? 'unchanged' : 'applied');
    if (!isUnchanged)
      log.info(
        { event: 'config', config_revision: config.revision, servers: config.servers.length },
        'configuration accepted',
      );
    await this.#keep(text);
  }

  #reject(rejection: ConfigRejection, wantedRevision: string | undefined): void {
    const { log, onReload } = this.#options;
    if (isSameRejection(rejection, this.#state.rejection)) return;
    this.#state = { ...this.#state, wantedRevision, rejection };
    onReload?.(rejection.code === 'CONFIG_UNREADABLE' ? 'unreadable' : 'rejected');
    const running = this.#state.runningRevision;
    log.error(
      {
        event: 'config',
        error_code: rejection.code,
        issues: rejection.issues,
        wanted_revision: wantedRevision,
        config_revision: running,
      },
      running === undefined
        ? 'configuration refused'
        : 'configuration refused; the last good one goes on',
    );
  }

  async #keep(text: string): Promise<void> {
    const { lastGood, log } = this.#options;
    if (lastGood === undefined) return;
    try {
      if ((await lastGood.read()) !== text) await lastGood.write(text);
    } catch (error) {
      log.warn(
        { event: 'config', err: error },
        'the last good configuration could not be kept on disk',
      );
    }
  }

  async #runLastGood(): Promise<void> {
    const { lastGood, rules, log, onAccepted } = this.#options;
    const text = await lastGood?.read();
    if (text === undefined || this.#isClosed || this.#state.runningRevision !== undefined) return;
    const judged = judgeConfig(text, rules);
    if (judged.kind === 'rejected') {
      log.error(
        { event: 'config', error_code: judged.rejection.code, issues: judged.rejection.issues },
        'the last good configuration on disk is not valid',
      );
      return;
    }
    onAccepted(judged.config);
    this.#state = { ...this.#state, runningRevision: judged.config.revision, origin: 'last-good' };
    log.warn(
      { event: 'config', config_revision: judged.config.revision },
      'running the last good configuration from disk',
    );
  }
}

function isSameRejection(a: ConfigRejection, b: ConfigRejection | undefined): boolean {
  return b !== undefined && JSON.stringify(a) === JSON.stringify(b);
}
