/** Ingest: dropped to committed and archived, against inserting the same rows into the same tables. */
import { copyFileSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openReader } from '../../src/store/database.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';
import { openWriter } from '../../src/store/writer.ts';
import { type Bench, median, type Row, SUBSCRIPTIONS } from './common.ts';
import { command, startAppliance } from './program.ts';

export async function ingest(bench: Bench): Promise<Row> {
  const ours: number[] = [];
  const bare: number[] = [];
  const [file = ''] = readdirSync(join(bench.folder, 'exports'));
  for (let round = 0; round < bench.rounds; round += 1) {
    rmSync(bench.data, { recursive: true, force: true });
    prepareAccess(bench);
    const appliance = await startAppliance(bench.data);
    const drop = join(bench.data, 'drop');
    const copy = join(drop, `${file}.part`);
    // Copying it is not what is measured: it lies there, under a name that is left alone, before it is dropped.
    copyFileSync(join(bench.folder, 'exports', file), copy);
    const startMs = performance.now();
    renameSync(copy, join(drop, file));
    await archived(drop, file);
    ours.push(bench.rows / ((performance.now() - startMs) / 1000));
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

function prepareAccess(bench: Bench): void {
  const data = ['--data', bench.data];
  command('account', 'add', 'bench', '--name', 'Bench', ...data);
  for (const id of SUBSCRIPTIONS) command('subscription', 'add', `${id}`, '--account', 'bench', ...data);
  const made: unknown = JSON.parse(
    command(
      'key',
      'create',
      '--account',
      'bench',
      '--name',
      'bench',
      '--scopes',
      'detections:read',
      '--subscriptions',
      SUBSCRIPTIONS.join(','),
      '--json',
      ...data,
    ),
  );
  bench.key = String(Reflect.get(Object(made), 'key'));
}

export async function archived(drop: string, file: string): Promise<void> {
  for (;;) {
    for (const day of readdirSync(join(drop, 'archive'))) {
      if (readdirSync(join(drop, 'archive', day)).includes(file)) return;
    }
    if (readdirSync(join(drop, 'failed')).length > 0) throw new Error(`${file} failed`);
    await sleep(2);
  }
}

/** @returns rows a second: each row is one in `detection` and one in `stream_row` */
function bareInsert(bench: Bench): number {
  const source = openReader(join(bench.data, 'detections.db'));
  const detections = source
    .prepare<unknown[], unknown[]>('SELECT * FROM detection ORDER BY rowid')
    .raw()
    .all();
  const streamRows = source
    .prepare<unknown[], unknown[]>('SELECT * FROM stream_row ORDER BY position')
    .raw()
    .all();
  source.close();
  const path = join(bench.folder, 'bare.db');
  const db = openWriter(path, DETECTIONS_SCHEMA);
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
