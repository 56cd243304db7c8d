/** Turns the administration on. Its modules are loaded only then, since they would delay every start. */
import {
  type IsSessionOpen,
  isConsoleSessionEnded,
  NotReadable,
  readConsoleEpoch,
  Sessions,
} from '../auth/console-sessions.ts';
import { now } from '../clock.ts';
import type { Config } from '../config/load.ts';
import type { Conditions } from '../health/alert-conditions.ts';
import type { RequestCounts } from '../limits/request-counts.ts';
import type { Status } from '../operations/status.ts';
import { deriveKey } from '../seal.ts';
import { createFileReader, type FileReader } from '../store/file-reader.ts';
import type { DataFolder } from '../store/folder.ts';
import type { InstallationKind } from '../store/installation.ts';
import type { ConsoleOptions } from './console/console.ts';
import type { AdminOptions } from './listener.ts';
import type { Metrics } from './metrics.ts';
import type { Operations } from './thread-client.ts';

export interface OpenAdminOptions extends Pick<AdminOptions, 'monitor' | 'dailyRows' | 'keyUses' | 'log'> {
  readonly config: Config;
  readonly folder: DataFolder;
  readonly secret: Buffer;
  readonly conditions: Conditions;
  readonly operations: Operations;
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

/** @throws Refused `failed` when it cannot listen */
export async function openAdmin(metrics: Metrics, options: OpenAdminOptions) {
  const { startAdmin } = await import('./listener.ts');
  const { config, folder, server } = options;
  const access = createFileReader(folder.access);
  const admin = await startAdmin({
    ...options,
    ...server,
    metrics,
    settings: config.admin,
    photos: { folder: config.photos.folder, key: deriveKey(options.secret, 'photo') },
    limits: config.server,
    hasOwnCertificate: config.admin.tls_certificate !== config.server.tls_certificate,
    console: consoleOptions(options, access),
    status: () => readStatus(options.operations),
    now,
  });
  return {
    url: admin.url,
    async close() {
      await admin.close();
      access.close();
    },
  };
}

/** @returns null while the operations thread cannot answer: whoever reads the metrics asks again */
async function readStatus(operations: Operations): Promise<Status | null> {
  const asking = { path: 'status', given: {}, way: 'api', by: { actor: 'metrics' } } as const;
  const { status, body } = await operations.run(asking);
  return status === 200 ? JSON.parse(body).value : null;
}

function consoleOptions(
  { secret, operations, lab, log }: OpenAdminOptions,
  access: FileReader,
): ConsoleOptions {
  const isOpen: IsSessionOpen = ({ id, epoch }) => {
    try {
      const db = access.db();
      if (db !== null) return readConsoleEpoch(db) === epoch && !isConsoleSessionEnded(db, id);
    } catch {
      access.close();
    }
    throw new NotReadable();
  };
  return { operations, sessions: new Sessions(secret, isOpen, operations.links), lab, log };
}
