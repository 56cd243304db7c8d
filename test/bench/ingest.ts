/** Ingest, from the drop to the archive, against plain inserts of the same rows into the same tables. */

import { copyFileSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '../../src/store/database.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';
import { type Bench, median, type Row, SUBSCRIPTIONS } from './common.ts';
import { BUNDLE, commandOf, startAppliance } from './program.ts';

export async function ingest(bench: Bench): Promise<Row> {
  const ours: number[] = [];
  const bare: number[] = [];
  const [file = ''] = readdirSync(join(bench.folder, 'exports'));
  for (let round = 0; round < bench.rounds; round += 1) {
    rmSync(bench.data, { recursive: true, force: true });
    bench.key = prepareAccess(bench.data, SUBSCRIPTIONS);
    const appliance = await startAppliance(bench.data);
    const seconds = await dropped(join(bench.data, 'drop'), join(bench.folder, 'exports'), file);
    ours.push(bench.rows / seconds);
    await appliance.stop();
    bare.push(bareInsert(bench));
  }
  return {
    what: 'ingest, dropped to committed and archived',
    against: 'bare better-sqlite3, same rows, same tables, one transaction',
    unit: 'rows/s',
    appliance: median(ours),
    limit: median(bare),
    reach: 0.7,
  };
}

/** @returns how many seconds it took until the file was archived */
export async function dropped(drop: string, folder: string, file: string): Promise<number> {
  const copy = join(drop, `${file}.part`);
  // Copy it first under a name that ingest ignores: the copy is not measured.
  copyFileSync(join(folder, file), copy);
  const startMs = performance.now();
  renameSync(copy, join(drop, file));
  await archived(drop, file);
  return (performance.now() - startMs) / 1000;
}

/** @returns a key that reads the first four subscriptions: a request reads at most four */
export function prepareAccess(folder: string, subscriptions: readonly number[], bundle = BUNDLE): string {
  const data = ['--data', folder];
  commandOf(bundle, 'account', 'add', 'bench', '--name', 'Bench', ...data);
  for (const id of subscriptions)
    commandOf(bundle, 'subscription', 'add', `${id}`, '--account', 'bench', ...data);
  return createKey(folder, subscriptions, bundle);
}

export function createKey(folder: string, subscriptions: readonly number[], bundle = BUNDLE): string {
  const made: unknown = JSON.parse(
    commandOf(
      bundle,
      'key',
      'create',
      '--account',
      'bench',
      '--name',
      'bench',
      '--scopes',
      'detections:read',
      '--subscriptions',
      subscriptions.slice(0, 4).join(','),
      '--json',
      '--data',
      folder,
    ),
  );
  return String(Reflect.get(Object(made), 'key'));
}

export async function archived(drop: string, file: string): Promise<void> {
  while (!isArchived(drop, file)) await sleep(2);
}

/** @throws Error if a file failed */
export function isArchived(drop: string, file: string): boolean {
  if (readdirSync(join(drop, 'failed')).length > 0) throw new Error(`${file} failed`);
  return readdirSync(join(drop, 'archive')).some((day) =>
    readdirSync(join(drop, 'archive', day)).includes(file),
  );
}

/** @returns rows per second; each is a row in `detection` and one in `stream_row` */
function bareInsert(bench: Bench): number {
  const source = openDatabase(join(bench.data, 'detections.db'), 'read');
  const detections = source
    .prepare<unknown[], unknown[]>(
      'SELECT detection.* FROM stream_row AS row JOIN detection USING (place) ORDER BY row.position',
    )
    .raw()
    .all();
  const streamRows = source
    .prepare<unknown[], unknown[]>('SELECT * FROM stream_row ORDER BY position')
    .raw()
    .all();
  source.close();
  const path = join(bench.folder, 'bare.db');
  const db = openDatabase(path, 'write', DETECTIONS_SCHEMA);
  db.pragma('wal_autocheckpoint = 0');
  const places = (row: unknown[] | undefined) => (row ?? []).map(() => '?').join(', ');
  const insertDetection = db.prepare(`INSERT INTO detection VALUES (${places(detections[0])})`);
  const insertStreamRow = db.prepare(`INSERT INTO stream_row VALUES (${places(streamRows[0])})`);
  const startMs = performance.now();
  db.exec('BEGIN IMMEDIATE');
  for (const [index, row] of detections.entries()) {
    insertDetection.run(row);
    insertStreamRow.run(streamRows[index]);
  }
  db.exec('COMMIT');
  const seconds = (performance.now() - startMs) / 1000;
  db.close();
  for (const name of readdirSync(bench.folder))
    if (name.startsWith('bare.db')) rmSync(join(bench.folder, name));
  return detections.length / seconds;
}
