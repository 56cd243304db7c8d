/** `wirewatch backup`: brings a copy up to date once, whether or not the appliance is running. */
import { existsSync } from 'node:fs';
import { findAccess } from '../auth/spare-copy.ts';
import type { Mark } from '../log/format.ts';
import { findTail, placeOf } from '../log/log-reader.ts';
import { failed, misconfigured, Refused, reasonOf } from '../refused.ts';
import { refuseHalfRestored } from '../store/complete-restore.ts';
import { type DataFolder, dataFolder, noInstallation } from '../store/folder.ts';
import { keepInPlace } from '../store/locks.ts';
import { isLogError, LogDamage } from '../store/log-errors.ts';
import { readLogMarkOf } from '../store/log-mark.ts';
import { requireOwner } from '../store/owner.ts';
import type { OnProgress } from './copy-contents.ts';
import { openTried } from './open-place.ts';
import { folderAround, type PlaceSettings, Unreachable } from './place.ts';
import { Shipper } from './ship.ts';

export interface BackUpOptions {
  /** A folder, absolute, or `s3://bucket/prefix`. */
  readonly to: string;
  readonly settings: PlaceSettings;
  readonly data: string;
  readonly drop: string;
  readonly onProgress: OnProgress;
}

export interface BackedUp {
  /** The number of the last entry of the log. */
  readonly entry: number;
  /** The number of the last change of access.db. */
  readonly change: number;
  /** Bytes that were written. */
  readonly written: number;
}

/**
 * @throws Refused `failed` if the place cannot be written, or the installation is damaged, and then the copy stays as valid
 *   as it was; `configuration` if there is no installation to copy
 */
export async function backUp(options: BackUpOptions): Promise<BackedUp> {
  const { to, settings, onProgress } = options;
  const folder = dataFolder(options.data);
  requireOwner(folder);
  using held = new DisposableStack();
  held.defer(keepInPlace(folder));
  requireInstallation(folder);
  const around = folderAround(to, { data: folder.root, drop: options.drop });
  if (around !== null)
    throw failed(`${to} is part of the ${around} folder. Name another place, preferably on another disk.`);
  try {
    const place = await openTried(to, settings);
    const shipper = new Shipper(place, folder, (bytes) => onProgress('writing the copy', bytes, 0));
    const access = findAccess(folder);
    const end = endOf(folder);
    await shipper.ship(access, end);
    const change = access.kind === 'sound' ? access.state.change : 0;
    return { entry: end?.entry ?? 0, change, written: shipper.written };
  } catch (error) {
    throw explained(error, to);
  }
}

/** The last entry that a database has applied; the last one of the log if the database is not reliable. */
function endOf({ log, detections }: DataFolder): Mark | null {
  const mark = readLogMarkOf(detections);
  if (mark !== null && placeOf(log, mark) === 'known') return mark;
  return findTail(log).last;
}

function requireInstallation(folder: DataFolder): void {
  refuseHalfRestored(folder);
  const { root, access, spare, secret } = folder;
  if (!existsSync(access) && !existsSync(spare)) throw noInstallation(root);
  if (!existsSync(secret))
    throw misconfigured(
      `${root} cannot be backed up: ${secret} is missing. The first start makes it: wirewatch serve`,
    );
}

function explained(error: unknown, to: string): unknown {
  if (error instanceof Refused) return error;
  const cause = { cause: error };
  if (error instanceof LogDamage)
    return failed(`the log is damaged: ${error.message}. To find out what is wrong: wirewatch verify`, cause);
  if (error instanceof Unreachable || isLogError(error))
    return failed(`cannot write the copy ${to}: ${reasonOf(error, to)}`, cause);
  return error;
}
