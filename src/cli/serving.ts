/** What `serve`, `demo` and `lab` share: the log, the messages to the service manager, and the end on a signal. */
import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import type { Worker } from 'node:worker_threads';
import type { Command } from 'commander';
import { type Appliance, type ApplianceOptions, startAppliance } from '../appliance.ts';
import { type Config, loadConfig } from '../config/load.ts';
import { type Log, type Logger, openLog } from '../log.ts';
import { isErrorCode, reasonOf } from '../refused.ts';
import { refuseAsRoot } from '../store/acting-user.ts';
import { dataFolder } from '../store/folder.ts';
import type { InstallationKind } from '../store/installation.ts';
import { VERSION } from '../version.ts';
import { resolveDataFolder } from './data-folder.ts';
import { commonOptions, settingFlags } from './options.ts';
import { type Progress, progress } from './output.ts';
import { createServiceManager, type ServiceManager } from './service-manager.ts';

/** Files with fewer rows get no progress line. */
const PROGRESS_ROWS_MIN = 20_000;

export interface Serving {
  readonly appliance: Appliance;
  readonly config: Config;
  readonly log: Logger;
  readonly serviceManager: ServiceManager;
  /** Settles with the signal that is to end it. */
  readonly signal: Promise<NodeJS.Signals>;
}

export interface ServeOptions extends Pick<ApplianceOptions, 'graceMs' | 'intervene'> {
  /** Told of the configuration before anything is opened. @returns that with which it starts */
  readonly prepare?: (config: Config, log: Logger) => Promise<Config>;
  /** For the manual that the administration shows. */
  readonly ingestThread: Worker;
}

/** Starts the appliance as configured, and logs the address it listens on. */
export async function serveAppliance(
  command: Command,
  kind: InstallationKind,
  { prepare, ...options }: ServeOptions,
): Promise<Serving> {
  const common = commonOptions(command);
  const given = loadConfig({
    flags: settingFlags(command),
    env: process.env,
    file: common.config,
    dataFolder: resolveDataFolder(common, { kind }),
  });
  // Before the log is opened: its file can lie in that folder, too.
  refuseAsRoot(dataFolder(given.dataFolder));
  const shown = progressLine();
  const opened = await openLog({ ...given.log, terminal: { beforeLine: shown.clear } });
  const { log } = opened;
  obeyHangups(opened);
  // What a start does says nothing to somebody who tries the demonstration.
  if (kind !== 'appliance' && log.level === 'info') log.level = 'warn';
  const config = (await prepare?.(given, log)) ?? given;
  const appliance = await startAppliance({
    config,
    kind,
    log,
    ...options,
    onProgress: shown.update,
  }).catch((error) => {
    // The caller prints the error on stderr; without this line, a log file would not have it.
    if (opened.kind === 'file') log.fatal({ reason: reasonOf(error) }, 'the appliance cannot start');
    throw error;
  });
  // Before anybody can know that it runs, and end it.
  const signal = endSignal();
  log.level = config.log.level;
  log.info(
    { url: appliance.url, version: VERSION, data: config.dataFolder, drop: appliance.drop },
    'listening',
  );
  if (opened.kind === 'file' && process.stderr.isTTY)
    process.stderr.write(
      `wirewatch ${VERSION}: listening on ${appliance.url}; the log is in ${config.log.file}\n`,
    );
  const serviceManager = createServiceManager(process.env, log);
  serviceManager.ready(`listening on ${appliance.url}`);
  return { appliance, config, log, serviceManager, signal };
}

/** Settles when a signal has ended the appliance; a second one ends the process at once. */
export async function untilSignal(serving: Serving, beforeStop: () => void = () => {}): Promise<void> {
  const { appliance, log, serviceManager } = serving;
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'a fault ended the appliance');
    log.flush(() => process.exit(1));
  });
  const { renewCertificate } = appliance;
  if (renewCertificate !== null) process.on('SIGHUP', renewCertificate);
  const signal = await serving.signal;
  log.info({ signal }, 'stopping');
  serviceManager.stopping();
  process.once('SIGTERM', () => process.exit(1));
  process.once('SIGINT', () => process.exit(1));
  beforeStop();
  await appliance.stop();
  log.info('stopped');
  // Here, and not as the process exits: the exit would hang if nobody reads the log any more.
  await new Promise<void>((resolve) => log.flush(() => resolve()));
}

function endSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    process.once('SIGTERM', resolve);
    process.once('SIGINT', resolve);
  });
}

/**
 * SIGHUP means two things. From logrotate, a certificate renewal or a service manager: open the renewed files. From a
 * terminal that was closed: end.
 */
function obeyHangups(log: Log): void {
  const terminals = [0, 1, 2].filter((fd) => isatty(fd));
  process.on('SIGHUP', () => {
    if (terminals.some(hasHungUp)) process.kill(process.pid, 'SIGTERM');
    else log.reopen();
  });
}

function hasHungUp(terminal: number): boolean {
  try {
    writeSync(terminal, '');
    return false;
  } catch (error) {
    return isErrorCode(error, 'EIO');
  }
}

/** The line on a terminal that shows the progress of a long file. */
function progressLine(): {
  update: (file: string, rows: number, isDone: boolean) => void;
  clear: () => void;
} {
  let shown: { file: string; line: Progress } | null = null;
  return {
    clear: () => shown?.line.end(),
    update: (file, rows, isDone) => {
      if (rows < PROGRESS_ROWS_MIN) return;
      if (shown?.file !== file) {
        shown?.line.end();
        shown = { file, line: progress(file) };
      }
      if (!isDone) {
        shown.line.update(rows);
        return;
      }
      shown.line.end();
      shown = null;
    },
  };
}
