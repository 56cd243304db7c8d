/**
 * Helpers for the commands on accounts, subscriptions and keys: open the access database, read option values, show one
 * entry.
 */
import type { Command } from 'commander';
import {
  readAccountId,
  readContentTypes,
  readDailyRows,
  readName,
  readSubscriptionId,
  readZone,
} from '../config/option-values.ts';
import type { ContentType } from '../detection/content-type.ts';
import { openAccess, type Recovered } from '../history/access.ts';
import { printable } from '../printable.ts';
import { Refused } from '../refused.ts';
import { actAsOwner } from '../store/acting-user.ts';
import type { Database } from '../store/database.ts';
import { dataFolder, ensureFolder } from '../store/folder.ts';
import { keepInPlace } from '../store/locks.ts';
import { withReserve } from '../store/reserve.ts';
import { resolveDataFolder } from './data-folder.ts';
import { operationOf } from './operation.ts';
import { commonOptions, listValue, optionValue } from './options.ts';

/** An open access database; no restore replaces it before it is closed. */
export interface OpenAccess {
  readonly db: Database;
  close(): void;
}

/**
 * Opens the access database of the command's data folder, updated to the end of its log.
 *
 * @param create whether a missing one is created
 */
export function openForCommand(command: Command, { create = false }: { create?: boolean } = {}): OpenAccess {
  const data = resolveDataFolder(commonOptions(command));
  const folder = dataFolder(data);
  const operation = operationOf(command);
  actAsOwner(folder);
  if (create) ensureFolder(folder);
  const release = keepInPlace(folder, true);
  try {
    const db = openAccess(data, { create, operation, onRecovered: tellRecovered });
    return {
      db,
      close() {
        db.close();
        release();
      },
    };
  } catch (error) {
    release();
    throw error;
  }
}

function tellRecovered(recovered: Recovered): void {
  const said =
    recovered.kind === 'brought up'
      ? 'access.db was older than its log and has been updated from it'
      : `access.db was rebuilt from its log: ${printable(recovered.reason)}`;
  process.stderr.write(`wirewatch: ${said}\n`);
}

/**
 * Runs `work` on the access database of the command's data folder.
 *
 * @param create whether a missing one is created
 * @param urgent must work even on a full disk: gives up the disk space that is reserved for that
 */
export function withAccess<Result>(
  command: Command,
  work: (db: Database) => Result,
  { create = false, urgent = false }: { create?: boolean; urgent?: boolean } = {},
): Result {
  const run = () => {
    const { db, close } = openForCommand(command, { create });
    try {
      return work(db);
    } finally {
      close();
    }
  };
  return urgent ? withReserve(dataFolder(resolveDataFolder(commonOptions(command))), run) : run();
}

/** @throws Refused `usage` when a `set` command was given nothing to set */
export function requireChanges(command: Command): void {
  if (Object.keys(command.opts()).length > 0) return;
  throw new Refused(
    'usage',
    `nothing to change: give at least one option. See: wirewatch ${command.parent?.name()} set --help`,
  );
}

/** Argument or option value: the id of an account. */
export function accountIdValue(value: string): string {
  return optionValue(readAccountId(value));
}

/** Argument or option value: the id of a subscription. */
export function subscriptionIdValue(value: string): number {
  return optionValue(readSubscriptionId(value));
}

/** Option value: a name for people. */
export function nameValue(value: string): string {
  return optionValue(readName(value));
}

/** The option value that clears a setting. {@link orNull} turns it into null: commander would replace null by `''`. */
export type None = 'none';

/** The value of an option that may be `none`; undefined if the option was not given. */
export function orNull<Value>(value: Value | None | undefined): Value | null | undefined {
  return value === 'none' ? null : value;
}

/** Option value: a daily row allowance, or `none`. */
export function dailyRowsValue(value: string): number | None {
  return optionValue(readDailyRows(value)) ?? 'none';
}

/** Option value: an IANA time zone. */
export function zoneValue(value: string): string {
  return optionValue(readZone(value));
}

/** Option value: comma-separated content types. */
export function contentTypesValue(value: string): ContentType[] {
  return optionValue(readContentTypes(listValue(value)));
}

/** One entry as lines of a label and its value; null is shown as `-`. */
export function details(lines: readonly (readonly [label: string, value: string | number | null])[]): string {
  const width = Math.max(...lines.map(([label]) => label.length));
  return lines.map(([label, value]) => `${label.padEnd(width)}  ${value ?? '-'}`).join('\n');
}
