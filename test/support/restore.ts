/** An appliance with 51 detections, and a copy of the first 50. Since then the first one got another headline. */
import assert from 'node:assert/strict';
import { cpSync, existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatMs } from '../../src/time.ts';
import { sharedAppliance } from './appliance.ts';
import { runToEnd, succeed } from './command.ts';
import { reading } from './database-content.ts';
import { fileName, ndjson, newRow, newRows, nextWindowMs } from './export-files.ts';
import { serve } from './program.ts';
import { filesBelow, testFolder } from './test-folder.ts';

export const work = testFolder();
export const appliance = await sharedAppliance();
/** The first detection. */
export const first = newRow({ article_headline: 'right' });
const rows = [first, ...newRows(49)];
await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
/** A copy with 50 detections, and the number of its last entry. */
export const backup = join(work, 'backup');
export const backedUp: number = JSON.parse(appliance.cli(['backup', backup, '--json']).stdout).entries;
/** A time before the 51st detection. */
export const backedUpAtMs = Math.floor(Date.now() / 1000) * 1000;
// Entries have times in whole seconds.
await sleep(1100 - (Date.now() % 1000));
const windowMs = nextWindowMs();
/** The 51st detection. */
export const added = newRow();
const wrong = { ...first, article_headline: 'WRONG', last_scored_at: formatMs(windowMs + 60_000) };
await appliance.dropped(fileName('newswire', windowMs), ndjson([added, wrong]));
await appliance.serving().stop();
/** The data folder with 51 detections, copied without writers, and a copy of them. */
export const stopped = copyOf(appliance.data, 'stopped');
await appliance.restart();
export const whole = backupOf(copyOf(stopped, 'whole-data'), 'whole');

export const run = (...args: string[]) => runToEnd(args);

export const restored = (...args: string[]) => JSON.parse(succeed(['restore', ...args, '--json']).stdout);

/** Makes a copy of a stopped installation. */
export function backupOf(data: string, name: string): string {
  const copy = join(work, name);
  succeed(['backup', copy, '--data', data]);
  return copy;
}

export function copyOf(folder: string, name: string): string {
  const copy = join(work, name);
  cpSync(folder, copy, { recursive: true, preserveTimestamps: true });
  return copy;
}

/** Names and contents of all files, except the lock and -shm files. */
export function contentOf(folder: string): Map<string, string> {
  const names = filesBelow(folder)
    .filter((path) => !/^(lock.*|.*-shm|.*-lock)$/.test(basename(path)))
    .sort();
  return new Map(names.map((name) => [name.slice(folder.length), readFileSync(name).toString('latin1')]));
}

export function assertSame(found: Map<string, string>, expected: Map<string, string>, when?: string): void {
  assert.deepEqual([...found.keys()], [...expected.keys()], when);
  for (const [name, content] of expected) assert.ok(found.get(name) === content, `${name} ${when ?? ''}`);
}

export const inDetections = <Row>(folder: string, sql: string): Row[] =>
  reading(join(folder, 'detections.db'), (db) => db.prepare<[], Row>(sql).all());

export const detectionsIn = (folder: string) =>
  inDetections<{ count: number }>(folder, 'SELECT count(*) AS count FROM detection')[0]?.count;
export const epochsIn = (folder: string) =>
  inDetections<{ number: number; position: number; orphans: string; reason: string }>(
    folder,
    'SELECT number, position, orphans, reason FROM version_epoch ORDER BY number',
  );

/** Starts and stops an appliance on a folder. @returns its log */
export async function served(data: string): Promise<readonly Record<string, unknown>[]> {
  const isThere = existsSync(join(data, 'detections.db'));
  const serving = await serve(data);
  const rebuilt = 'detections.db was brought up to date from the log';
  if (!isThere) await serving.logged('a rebuild', ({ msg }) => msg === rebuilt);
  assert.equal(await serving.stop(), 0);
  return serving.log();
}
