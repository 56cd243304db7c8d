/** Turns the administration on. Its modules are loaded only then, since they would delay every start. */
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { isConsoleSessionEnded, readConsoleEpoch } from '../auth/console-sessions.ts';
import { now } from '../clock.ts';
import { type Config, enabledExports } from '../config/load.ts';
import type { Conditions } from '../health/alert-conditions.ts';
import type { RequestCounts } from '../limits/request-counts.ts';
import { reasonOf } from '../refused.ts';
import { DatabaseDamage } from '../store/database-errors.ts';
import { createFileReader, type FileReader } from '../store/file-reader.ts';
import type { DataFolder } from '../store/folder.ts';
import type { InstallationKind } from '../store/installation.ts';
import { type NotedConsole, noteAddress } from '../store/noted-address.ts';
import type { ConsoleOptions } from './console/console.ts';
import type { IsSessionOpen } from './console/sessions.ts';
import type { AdminOptions } from './listener.ts';
import type { Metrics } from './metrics.ts';

export interface OpenAdminOptions
  extends Pick<AdminOptions, 'monitor' | 'detections' | 'dailyRows' | 'keyUses' | 'log'> {
  readonly config: Config;
  readonly kind: InstallationKind;
  readonly folder: DataFolder;
  readonly secret: Buffer;
  readonly conditions: Conditions;
  readonly server: Pick<AdminOptions, 'connections' | 'certificateExpiresMs'> & { readonly url: string };
  readonly lab: ConsoleOptions['lab'];
}

/** A demonstration and a lab have it on, at any free port. */
export function isAdminOn({ admin }: Pick<Config, 'admin'>, kind: InstallationKind): boolean {
  return admin.port !== 0 || kind !== 'appliance';
}

export async function loadMetrics(counts: RequestCounts): Promise<Metrics> {
  const { createMetrics } = await import('./metrics.ts');
  return createMetrics(counts);
}

export interface OpenAdmin {
  readonly console: NotedConsole;
  close(): Promise<void>;
}

/** @throws Refused `failed` when it cannot listen */
export async function openAdmin(metrics: Metrics, options: OpenAdminOptions): Promise<OpenAdmin> {
  const { startAdmin } = await import('./listener.ts');
  const { config, folder, server, log } = options;
  const access = createFileReader(folder.access);
  const run = randomUUID();
  const admin = await startAdmin({
    ...options,
    ...server,
    metrics,
    settings: config.admin,
    limits: config.server,
    hasOwnCertificate: config.admin.tls_certificate !== config.server.tls_certificate,
    console: await consoleOptions(options, access, run),
    backup: config.backup,
    enabled: enabledExports(config),
    drop: config.ingest.drop,
    now,
  });
  const noted = { url: admin.url, run };
  noteAddress(folder.consoleAddress, noted, (reason) =>
    log.warn({ reason }, 'cannot note the address of the console: wirewatch console cannot find it'),
  );
  return {
    console: noted,
    async close() {
      rmSync(folder.consoleAddress, { force: true });
      await admin.close();
      access.close();
    },
  };
}

async function consoleOptions(
  { config, kind, folder, secret, monitor, detections, server, lab, log }: OpenAdminOptions,
  access: FileReader,
  run: string,
): Promise<ConsoleOptions> {
  const { NotReadable, Sessions } = await import('./console/sessions.ts');
  const isOpen: IsSessionOpen = ({ id, epoch }) => {
    try {
      const db = access.db();
      if (db !== null) return readConsoleEpoch(db) === epoch && !isConsoleSessionEnded(db, id);
    } catch {
      access.close();
    }
    throw new NotReadable();
  };
  return {
    settings: {
      data: folder.root,
      drop: config.ingest.drop,
      enabled: [...enabledExports(config)],
      backup: config.backup,
      daily_rows: config.limits.daily_rows,
      key_prefix: config.keys.prefix,
      base_url: config.server.base_url === '' ? server.url : config.server.base_url,
    },
    sessions: new Sessions(secret, isOpen, run),
    isDemo: kind === 'demo',
    lab,
    unreadable() {
      if (monitor.isDamaged())
        return 'detections.db is damaged. Restart Wirewatch: it rebuilds the file from its log.';
      try {
        detections();
        return null;
      } catch (error) {
        return `detections.db cannot be read yet: ${reasonOf(error)}`;
      }
    },
    onDamage: (message) => monitor.noteFault(new DatabaseDamage(message)),
    log,
    now: Date.now,
  };
}
