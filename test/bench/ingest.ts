/** Export files, and how long it takes until the appliance has read them. */
import { copyFileSync, readdirSync, renameSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Bench, SUBSCRIPTIONS } from './common.ts';
import { command, type RunOptions } from './program.ts';

/** Generates one file of newswire rows in a new folder. @returns its path */
export function generated(
  out: string,
  rows: number,
  subscriptions: readonly number[],
  ...more: readonly string[]
): string {
  const ids = ['--subscriptions', subscriptions.join(',')];
  command(['generate', '--out', out, '--export', 'newswire', '--rows', `${rows}`, ...ids, ...more]);
  return join(out, readdirSync(out)[0] ?? '');
}

/** The file of all rows of a run. */
export const exportOf = ({ folder, rows }: Bench): string =>
  generated(join(folder, 'exports'), rows, SUBSCRIPTIONS);

/** Makes a data folder. @returns a key that reads the first four subscriptions: a request reads at most four */
export function prepareAccess(
  folder: string,
  subscriptions: readonly number[] = SUBSCRIPTIONS,
  options: RunOptions = {},
): string {
  const data = ['--data', folder];
  command(['account', 'add', 'bench', '--name', 'Bench', ...data], options);
  for (const id of subscriptions)
    command(['subscription', 'add', `${id}`, '--account', 'bench', ...data], options);
  return createKey(folder, subscriptions, options);
}

export function createKey(
  folder: string,
  subscriptions: readonly number[] = SUBSCRIPTIONS,
  options: RunOptions = {},
): string {
  const ids = ['--subscriptions', subscriptions.slice(0, 4).join(',')];
  const terms = ['--account', 'bench', '--name', 'bench', '--scopes', 'detections:read', ...ids];
  return JSON.parse(command(['key', 'create', ...terms, '--json', '--data', folder], options)).key;
}

/** Drops a file. @param during called again and again meanwhile; @returns the seconds until it was archived */
export async function dropped(drop: string, file: string, during = () => {}): Promise<number> {
  const name = basename(file);
  // The copy is not measured: ingest ignores this name.
  copyFileSync(file, join(drop, `${name}.part`));
  const startMs = performance.now();
  for (renameSync(join(drop, `${name}.part`), join(drop, name)); !isArchived(drop, name); await sleep(2))
    during();
  return (performance.now() - startMs) / 1000;
}

/** @throws Error if a file failed */
function isArchived(drop: string, name: string): boolean {
  if (readdirSync(join(drop, 'failed')).length > 0) throw new Error(`${name} failed`);
  return readdirSync(join(drop, 'archive')).some((day) =>
    readdirSync(join(drop, 'archive', day)).includes(name),
  );
}
