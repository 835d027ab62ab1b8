// One run of `fairlead dev`: check, start local programs, render, start the sidecar, say what is
// there, then follow every edit until told to stop. A bad edit is reported and changes nothing.

import type { Clock } from '#core/clock.ts';

import type { DevReport, ServerView } from './dev-report.ts';
import { DirectoryWatch } from './directory-watch.ts';
import { LocalProcesses, readProcesses } from './local-processes.ts';
import { MountedDirectory } from './mounted-directory.ts';
import { pickBinding } from './pick-binding.ts';
import { type PlannedBinding, planDirectory } from './plan-directory.ts';
import { isPortFree } from './port-check.ts';
import { SidecarChild } from './sidecar-child.ts';
import { readStatus, type SidecarStatus, untilSettled } from './status-client.ts';

export const EXIT = { ok: 0, failure: 1, usage: 64, noInput: 66, portInUse: 69 } as const;
const SETTLE_TIMEOUT_MS = 15_000;
const STATUS_POLL_MS = 2_000;

export interface DevOptions {
  readonly directory: string;
  readonly port: number;
  /** `namespace/name`; needed only when the directory has several bindings. */
  readonly binding: string | undefined;
  readonly stateDirectory: string | undefined;
  readonly report: DevReport;
  readonly clock: Clock;
  /** Aborts at the first Ctrl-C or SIGTERM. */
  readonly stop: AbortSignal;
}

export async function runDev(options: DevOptions): Promise<number> {
  const { report, directory, port } = options;
  const first = await chooseBinding(options);
  if (typeof first === 'number') return first;
  const processes = await readProcesses(directory);
  if (processes.kind === 'bad') {
    for (const problem of processes.problems) report.problem(problem);
    return EXIT.failure;
  }
  if (port !== 0 && !(await isPortFree(port))) {
    report.problem(
      `Port ${String(port)} is already in use. Stop the other program, or choose another port with --port.`,
    );
    return EXIT.portInUse;
  }
  await using undo = new AsyncDisposableStack();
  const local = undo.use(new LocalProcesses({ directory, clock: options.clock, report }));
  if (processes.processes.length > 0)
    report.starting(`Starting ${processes.processes.map(({ name }) => name).join(', ')}`);
  const faults = await local.start(processes.processes, options.stop);
  for (const fault of faults) report.problem(fault);
  if (options.stop.aborted) return EXIT.ok;
  const mounted = undo.use(await MountedDirectory.create());
  await mounted.write(first.text);
  // Awaited here: what the session stands on goes away when this function ends.
  return await new DevSession(options, mounted, first).run();
}

/** The binding to serve, or the exit code. */
async function chooseBinding({
  directory,
  binding,
  report,
}: DevOptions): Promise<PlannedBinding | number> {
  const plan = await planDirectory([directory], { development: true });
  switch (plan.kind) {
    case 'unreadable':
      report.problem(plan.message);
      return EXIT.noInput;
    case 'bad':
      report.invalid(plan.issues, { isServing: false });
      return EXIT.failure;
    case 'ok':
      return chooseOf(plan.bindings, { directory, binding, report });
    default:
      return plan satisfies never;
  }
}

function chooseOf(
  bindings: readonly PlannedBinding[],
  { directory, binding, report }: Pick<DevOptions, 'directory' | 'binding' | 'report'>,
): PlannedBinding | number {
  const choice = pickBinding(bindings, { wanted: binding, source: directory });
  switch (choice.kind) {
    case 'ok':
      return choice.binding;
    case 'none':
      report.problem(
        `${directory} has no McpBinding. Add one that names the servers to serve; see "fairlead dev --help".`,
      );
      return EXIT.noInput;
    case 'unclear':
      report.problem(choice.message);
      return EXIT.usage;
    default:
      return choice satisfies never;
  }
}

class DevSession {
  readonly #options: DevOptions;
  readonly #mounted: MountedDirectory;
  readonly #bindingId: string;
  #text: string;
  #lastIssues = '';
  #servers: readonly ServerView[] = [];
  #statusUrl = '';
  #reloading: Promise<void> = Promise.resolve();
  #isReloadWanted = false;

  constructor(options: DevOptions, mounted: MountedDirectory, first: PlannedBinding) {
    this.#options = options;
    this.#mounted = mounted;
    this.#bindingId = first.id;
    this.#text = first.text;
    this.#revision = first.revision;
  }

  #revision: string;

  async run(): Promise<number> {
    const { directory, port, report, clock, stop } = this.#options;
    const sidecar = new SidecarChild({
      configDirectory: this.#mounted.path,
      stateDirectory: this.#options.stateDirectory ?? this.#mounted.statePath,
      port,
      onLine: (line) => this.#onLine(line),
    });
    const killNow = (): void => sidecar.kill();
    process.on('exit', killNow);
    let hasStarted = false;
    try {
      const started = await Promise.race([this.#announce(sidecar), whenAborted(stop)]);
      if (started === 'stopped') return EXIT.ok;
      if (started === undefined) return EXIT.failure;
      hasStarted = true;
      using _watch = new DirectoryWatch({ directory, clock, onChange: () => this.#reload() });
      // What was edited while we were starting.
      this.#reload();
      return await this.#untilEnd(sidecar, stop);
    } finally {
      if (hasStarted && stop.aborted) report.stopping();
      sidecar.stop();
      await sidecar.exited;
      process.off('exit', killNow);
    }
  }

  async #announce(sidecar: SidecarChild): Promise<string | undefined> {
    const { directory, report, clock, stop } = this.#options;
    try {
      const { agentPort } = await sidecar.untilReady();
      const origin = `http://127.0.0.1:${String(agentPort)}`;
      this.#statusUrl = `${origin}/status`;
      const status = await untilSettled(this.#statusUrl, this.#revision, {
        clock,
        timeoutMs: SETTLE_TIMEOUT_MS,
        signal: stop,
      });
      if (stop.aborted) return undefined;
      this.#servers = status?.servers ?? [];
      report.ready({
        url: `${origin}/mcp`,
        binding: this.#bindingId,
        directory,
        revision: this.#revision,
        servers: this.#servers,
      });
      return origin;
    } catch (error) {
      report.problem(error instanceof Error ? error.message : 'the sidecar did not start');
      return undefined;
    }
  }

  async #untilEnd(sidecar: SidecarChild, stop: AbortSignal): Promise<number> {
    const polling = new AbortController();
    void this.#followStatus(polling.signal);
    const end = await Promise.race([whenAborted(stop), sidecar.exited]);
    polling.abort();
    if (end === 'stopped') return EXIT.ok;
    this.#options.report.problem(`The sidecar ended with code ${String(end)}.`);
    return EXIT.failure;
  }

  /** Servers come and go also without an edit. */
  async #followStatus(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      await clock.sleep(STATUS_POLL_MS, signal).catch(() => {});
      await this.#reloading;
      if (signal.aborted) return;
      const status = await readStatus(this.#statusUrl).catch(() => undefined);
      if (status !== undefined) this.#noteStates(status);
    }
  }

  #noteStates(status: SidecarStatus): void {
    const before = new Map(this.#servers.map((server) => [server.alias, server]));
    this.#servers = status.servers;
    for (const server of status.servers) {
      const known = before.get(server.alias);
      if (known === undefined || known.state !== server.state || known.reason !== server.reason)
        this.#options.report.serverState(server);
    }
  }

  #reload(): void {
    if (this.#isReloadWanted) return;
    this.#isReloadWanted = true;
    this.#reloading = this.#reloading.then(() => {
      this.#isReloadWanted = false;
      return this.#reloadNow();
    });
  }

  async #reloadNow(): Promise<void> {
    const { directory, report } = this.#options;
    const plan = await planDirectory([directory], { development: true });
    if (plan.kind === 'unreadable') {
      report.problem(`${plan.message} The last good configuration goes on.`);
      return;
    }
    if (plan.kind === 'bad') {
      const issues = JSON.stringify(plan.issues);
      if (issues !== this.#lastIssues) report.invalid(plan.issues, { isServing: true });
      this.#lastIssues = issues;
      return;
    }
    const wasBad = this.#lastIssues !== '';
    this.#lastIssues = '';
    const binding = plan.bindings.find(({ id }) => id === this.#bindingId);
    if (binding === undefined)
      report.problem(
        `McpBinding ${this.#bindingId} is gone. The last good configuration goes on until it is back.`,
      );
    else if (binding.text !== this.#text || wasBad) await this.#apply(binding);
  }

  async #apply(binding: PlannedBinding): Promise<void> {
    const { report, clock, stop } = this.#options;
    const before = toolNames(this.#servers);
    if (binding.text !== this.#text) {
      this.#text = binding.text;
      this.#revision = binding.revision;
      await this.#mounted.write(binding.text);
    }
    const status = await untilSettled(this.#statusUrl, binding.revision, {
      clock,
      timeoutMs: SETTLE_TIMEOUT_MS,
      signal: stop,
    });
    if (stop.aborted) return;
    this.#servers = status?.servers ?? this.#servers;
    const after = toolNames(this.#servers);
    report.reloaded({
      revision: binding.revision,
      servers: this.#servers,
      added: after.filter((name) => !before.includes(name)),
      removed: before.filter((name) => !after.includes(name)),
    });
  }

  #onLine(line: Readonly<Record<string, unknown>>): void {
    if (line['event'] === 'call' && line['method'] === 'tools/call')
      this.#options.report.call(line);
  }
}

function whenAborted(signal: AbortSignal): Promise<'stopped'> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve('stopped');
    signal.addEventListener('abort', () => resolve('stopped'), { once: true });
  });
}

function toolNames(servers: readonly ServerView[]): string[] {
  return servers.flatMap(({ tools }) => tools.map(({ name }) => name));
}
