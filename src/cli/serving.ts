/** Runs the appliance for `serve`, `demo` and `lab`: its log, messages to the service manager, and the end on a signal. */
import { spawn } from 'node:child_process';
import { writeSync } from 'node:fs';
import type { Worker } from 'node:worker_threads';
import { type Appliance, type ApplianceOptions, startAppliance } from '../appliance.ts';
import type { Config } from '../config/load.ts';
import { type Logger, openLog } from '../logger.ts';
import { paced } from '../pace.ts';
import { isErrorCode, Refused, reasonOf } from '../refused.ts';
import { dataFolder } from '../store/folder.ts';
import type { InstallationKind } from '../store/installation.ts';
import { requireOwner } from '../store/owner.ts';
import { SECOND_MS } from '../time.ts';
import { VERSION } from '../version.ts';
import { actorOfProcess } from './operate.ts';

export type Serving = Awaited<ReturnType<typeof serveAppliance>>;

/** Starts the appliance as configured, and logs the address it listens on. */
export async function serveAppliance(
  config: Config,
  kind: InstallationKind,
  options: Pick<ApplianceOptions, 'graceMs' | 'intervene'> & { readonly ingestThread: Worker },
) {
  // Before the log is opened: its file can lie in that folder, too.
  requireOwner(dataFolder(config.dataFolder));
  const { log, reopen } = await openLog(config.log);
  process.on('SIGHUP', () => {
    // From the terminal, which was closed; otherwise from logrotate or a service manager.
    if (hasHungUp()) process.kill(process.pid, 'SIGTERM');
    else reopen();
  });
  if (kind !== 'appliance' && log.level === 'info') log.level = 'warn';
  const { level } = log;
  const appliance = await startAppliance({ config, kind, log, ...options }).catch((error) => {
    // The caller prints the error on stderr; without this line, a log file would not have it.
    if (config.log.file !== '') log.fatal({ reason: reasonOf(error) }, 'the appliance cannot start');
    throw error;
  });
  // It stops the appliance. Awaited before anybody can learn that it runs.
  const signal = new Promise<NodeJS.Signals>((resolve) => {
    process.once('SIGTERM', resolve);
    process.once('SIGINT', resolve);
  });
  // The log of `demo` and `lab` has only warnings until then: lines about the first files mean nothing.
  const showLog = () => {
    log.level = config.log.level;
  };
  showLog();
  const { dataFolder: data, ingest } = config;
  log.info({ url: appliance.url, version: VERSION, data, drop: ingest.drop }, 'listening');
  log.level = level;
  if (config.log.file !== '' && process.stderr.isTTY)
    process.stderr.write(
      `wirewatch ${VERSION}: listening on ${appliance.url}; the log is in ${config.log.file}\n`,
    );
  const tellOfStop = tellServiceManager(`listening on ${appliance.url}`, log);
  return { appliance, config, log, tellOfStop, signal, showLog };
}

/** Resolves when a signal has stopped the appliance; a second one ends the process at once. */
export async function untilSignal(serving: Serving, beforeStop: () => void = () => {}): Promise<void> {
  const { appliance, log, tellOfStop } = serving;
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'a fault ended the appliance');
    log.flush(() => process.exit(1));
  });
  const signal = await serving.signal;
  log.info({ signal }, 'stopping');
  tellOfStop();
  process.once('SIGTERM', () => process.exit(1));
  process.once('SIGINT', () => process.exit(1));
  beforeStop();
  await appliance.stop();
  log.info('stopped');
  // Here, not in an exit handler: the exit would hang if nobody reads the log any more.
  await new Promise<void>((resolve) => log.flush(() => resolve()));
}

/** Runs an operation for the user who started the process. @returns its value @throws Refused as it says */
export async function operateHere<Value>(
  { operate }: Pick<Appliance, 'operate'>,
  path: string,
  given: unknown = {},
): Promise<Value> {
  const { status, body } = await operate({ path, given, way: 'command', by: actorOfProcess() });
  const answer = JSON.parse(body);
  if (status !== 200) throw new Refused('failed', answer.detail);
  return answer.value;
}

/** Whether the terminal that stderr went to was closed. */
function hasHungUp(): boolean {
  try {
    writeSync(process.stderr.fd, '');
    return false;
  } catch (error) {
    return isErrorCode(error, 'EIO');
  }
}

const NOTIFY_TIMEOUT_MS = paced(10 * SECOND_MS);
const MICROSECONDS_PER_MS = 1000;

/**
 * Notifies the service manager that the appliance is ready, and that it lives (sd_notify(3)). Node.js has no Unix datagram
 * sockets, so systemd's own systemd-notify sends each message, and waits until it was received. Without it the appliance
 * runs all the same.
 * @param status shown by `systemctl status` @returns notifies it of the stop
 */
function tellServiceManager(status: string, log: Logger): () => void {
  const { NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID = `${process.pid}` } = process.env;
  let hasFailed = false;
  const failed = (error: unknown) => {
    // Once: otherwise it would be logged at every watchdog interval.
    if (!hasFailed)
      log.warn({ err: error }, 'the service manager cannot be told: is systemd-notify installed?');
    hasFailed = true;
  };
  const notify = (...words: string[]) => {
    if (!NOTIFY_SOCKET) return;
    const child = spawn('systemd-notify', words, { stdio: 'ignore', timeout: NOTIFY_TIMEOUT_MS });
    child.unref();
    child.on('error', failed);
    child.on('exit', (code, signal) => {
      if (code !== 0) failed(new Error(`systemd-notify ended with ${code ?? signal}`));
    });
  };
  notify('READY=1', `STATUS=${status}`);
  // How long it waits for a sign of life (sd_watchdog_enabled(3)); without a number, it does not wait for one.
  const watchdogMs = Number(WATCHDOG_USEC) / MICROSECONDS_PER_MS;
  const isWatched = watchdogMs > 0 && WATCHDOG_PID === `${process.pid}`;
  const alive = isWatched ? setInterval(() => notify('WATCHDOG=1'), watchdogMs / 2).unref() : undefined;
  return () => {
    // The watchdog is off from here on, and each message would delay the end of the process.
    clearInterval(alive);
    notify('STOPPING=1', 'STATUS=stopping');
  };
}
