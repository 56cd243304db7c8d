/** What the commands that serve have in common: a log, progress on a terminal, and an end on a signal. */
import type { Command } from 'commander';
import { type Appliance, startAppliance } from '../appliance.ts';
import { type Config, loadConfig } from '../config/load.ts';
import { createLogger, type Logger } from '../log.ts';
import type { InstallationKind } from '../store/installation.ts';
import { resolveDataFolder } from './data-folder.ts';
import { commonOptions, settingFlags } from './options.ts';
import { type Progress, progress } from './output.ts';

/** Rows from which a file is worth a line that moves. */
const PROGRESS_ROWS_MIN = 20_000;

export interface Serving {
  readonly appliance: Appliance;
  readonly config: Config;
  readonly log: Logger;
}

/** Starts the appliance as configured, and says on the log where it listens. */
export async function serveAppliance(command: Command, kind: InstallationKind): Promise<Serving> {
  const common = commonOptions(command);
  const config = loadConfig({
    flags: settingFlags(command),
    env: process.env,
    file: common.config,
    dataFolder: resolveDataFolder(common, { demo: kind === 'demo' }),
  });
  const log = createLogger({ level: config.log.level });
  const appliance = await startAppliance({ config, kind, log, onProgress: showProgress() });
  log.info({ url: appliance.url, data: config.dataFolder, drop: appliance.drop }, 'listening');
  return { appliance, config, log };
}

/** Settles when a signal has ended the appliance; a second one ends the process at once. */
export async function untilSignal(
  { appliance, log }: Serving,
  beforeStop: () => void = () => {},
): Promise<void> {
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'a fault ended the appliance');
    log.flush(() => process.exit(1));
  });
  // What renews certificates signals so by habit; without this, it would end the appliance.
  const { renewCertificate } = appliance;
  if (renewCertificate !== null) process.on('SIGHUP', renewCertificate);
  const signal = await new Promise<NodeJS.Signals>((resolve) => {
    process.once('SIGTERM', resolve);
    process.once('SIGINT', resolve);
  });
  log.info({ signal }, 'stopping');
  process.once('SIGTERM', () => process.exit(1));
  process.once('SIGINT', () => process.exit(1));
  beforeStop();
  await appliance.stop();
  log.info('stopped');
  // Here, and not as the process exits: where nobody reads the log any more, writing then would be tried for ever.
  await new Promise<void>((resolve) => log.flush(() => resolve()));
}

function showProgress(): (file: string, rows: number, isDone: boolean) => void {
  let shown: { file: string; line: Progress } | null = null;
  return (file, rows, isDone) => {
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
  };
}
