/** When keys were last used and how many rows they have read today, as the appliance counts it in `usage.db`. */
import type { Command } from 'commander';
import { type Key, keyDocument } from '../auth/keys.ts';
import { type KeyUsage, readKeyUsage } from '../limits/usage.ts';
import { dataFolder } from '../store/folder.ts';
import { formatMs } from '../time.ts';
import { resolveDataFolder } from './data-folder.ts';
import { commonOptions } from './options.ts';

/** By key id; null where usage.db cannot be read. */
export type UsageOfKeys = ReadonlyMap<string, KeyUsage> | null;

/** To be called after access.db was opened: by then the command acts as the owner of the data folder. */
export function usageOfKeys(command: Command, nowMs: number): UsageOfKeys {
  return readKeyUsage(dataFolder(resolveDataFolder(commonOptions(command))).usage, nowMs);
}

/** A key as `--json` prints it, with what is known of its use. */
export function usedKeyDocument(key: Key, usage: UsageOfKeys, nowMs: number) {
  const { last_used_at = null, rows_today = 0 } = usage?.get(key.id) ?? {};
  return {
    ...keyDocument(key, nowMs),
    last_used_at: last_used_at === null ? null : formatMs(last_used_at),
    rows_today: usage === null ? null : rows_today,
  };
}
