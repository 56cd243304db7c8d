/** What test/long/real-week.test.ts is played with: small disks, the system that writes the exports, and three clients. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import type { ExportName } from '../../src/detection/content-type.ts';
import { packedText } from '../../src/packed.ts';
import { HOUR_MS, MINUTE_MS, WINDOW_MS } from '../../src/time.ts';
import { exportRows } from '../../src/tools/generate/rows.ts';
import { contentOf, fileName, type Row } from './export-files.ts';
import { type RunningProgram, runProgram } from './program.ts';
import { copyFolder } from './test-folder.ts';
import { until } from './until.ts';

const DISK_KIB = 2 * 1024 * 1024;

/** Puts a folder onto a disk in memory, of which only what is used takes room. */
export function smallDisk(folder: string) {
  const mount = (...args: string[]) => spawnSync('mount', [...args, folder]).status === 0;
  copyFolder(folder, `${folder}-below`);
  /** Whether this user may mount one. */
  const isMounted = mount('-t', 'tmpfs', '-o', `size=${DISK_KIB}k,mode=0700`, 'tmpfs');
  copyFolder(`${folder}-below`, folder);
  const resize = (kib: number) => mount('-o', `remount,size=${kib}k`);
  /** Takes away what is free; again if a file grows meanwhile. */
  const fill = () =>
    until('a full disk', () => {
      const { blocks, bfree, bsize } = statfsSync(folder);
      return resize(((blocks - bfree) * bsize) / 1024);
    });
  return {
    isMounted,
    fill,
    makeRoom: () => resize(DISK_KIB),
    remove: () => spawnSync('umount', ['-l', folder]),
  };
}

export const ZONE = 'Europe/Berlin';
/** What a clock in Berlin shows, `2026-10-25 02:30:00`. */
export const berlin = (ms: number) => new Date(ms).toLocaleString('sv-SE', { timeZone: ZONE });
/** Whether clocks in Berlin show this time twice: then the agency writes UTC. */
const isTwice = (ms: number) => [-HOUR_MS, HOUR_MS].some((away) => berlin(ms + away) === berlin(ms));

const PHOTO_COLUMNS: Readonly<Record<string, string>> = {
  subscription_id: 'kunde',
  article_headline: 'titel',
};
/** The settings with which photos are read: their export has names of its own, and the time of Berlin. */
export const PHOTOS = `
[exports.imagewire]
file_name = "fotos_{YYYYMMDD}_{HHmm}.csv"
time_format = "YYYY-MM-DD HH:mm:ss"
time_zone = "${ZONE}"
decimal = ","
columns = { subscription_id = "kunde", article_headline = "titel" }
`;

/** A photo as it is written. */
function photo(row: Row): Row {
  const written = (value: unknown) => {
    if (typeof value === 'number') return `${value}`.replace('.', ',');
    const ms = /^\d{4}-.*Z$/.test(`${value}`) ? Date.parse(`${value}`) : Number.NaN;
    return Number.isNaN(ms) || isTwice(ms) ? value : berlin(ms);
  };
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [PHOTO_COLUMNS[name] ?? name, written(value)]),
  );
}

/** An export file, and what it says. */
export interface ExportFile {
  readonly name: string;
  readonly export: ExportName;
  readonly rows: readonly Row[];
  readonly content: Buffer;
}

/** What the agency's matching system writes for a window: two rows for a subscription; once an hour there are none. */
export function windowFile(exportName: ExportName, windowMs: number, of: readonly number[]): ExportFile {
  const isPhotos = exportName === 'imagewire';
  const count = windowMs % HOUR_MS === 30 * MINUTE_MS ? 0 : 2;
  const rows = (isPhotos ? [7001] : of).flatMap((id) => rowsOf(exportName, id, windowMs, count));
  // A compressed file cannot be empty.
  const forms = count === 0 ? (['ndjson'] as const) : (['ndjson', 'ndjson.gz', 'csv.zst'] as const);
  const form = isPhotos ? 'csv' : (forms[(windowMs / WINDOW_MS) % forms.length] ?? 'csv');
  const local = berlin(windowMs).replaceAll(/[-:]/g, '').replace(' ', '_').slice(0, 13);
  const name = isPhotos && !isTwice(windowMs) ? `fotos_${local}.csv` : fileName(exportName, windowMs, form);
  const content = count === 0 ? Buffer.alloc(0) : contentOf(form, isPhotos ? rows.map(photo) : rows);
  return { name, export: exportName, rows, content };
}

/** Rows for a subscription, in one window or in several; some are of detections that are scored again. */
export function rowsOf(exportName: ExportName, id: number, windowStartMs: number, rows: number, windows = 1) {
  const subscriptions = [{ id, content_types: ['text', 'image'] as const }];
  return [...exportRows({ seed: 'week', exportName, windowStartMs, rows, windows, subscriptions })];
}

/**
 * Three clients, each with its own copy: `pull`, which follows all the time, and two that read when they are told to.
 * @param settings of `pull`
 */
export function createClients(folder: string, key: string, settings: Readonly<Record<string, string>>) {
  mkdirSync(folder);
  writeFileSync(join(folder, 'key'), key);
  writeFileSync(join(folder, 'client.py'), packedText('config', 'client-py'));
  writeFileSync(join(folder, 'client.ts'), packedText('config', 'client-ts'));
  let pull: RunningProgram | null = null;
  const run = async ([program = '', ...args]: readonly string[], env: Record<string, string>) => {
    const all = { PATH: process.env.PATH, KEY: key, ...env };
    await promisify(execFile)(program, args, { cwd: folder, env: all });
  };
  const stored = (name: string, table: string) => {
    using db = new DatabaseSync(join(folder, name), { readOnly: true, timeout: 10_000 });
    const { rows } = db.prepare(`SELECT '[' || group_concat(body) || ']' AS rows FROM ${table}`).get() ?? {};
    return comparable(JSON.parse(`${rows}`));
  };
  const endPull = async () => {
    pull?.kill('SIGKILL');
    await pull?.ended;
  };
  return {
    endPull,
    /** Has `pull` go on at an address. */
    async pullFrom(url: string): Promise<void> {
      await endPull();
      const files = ['--key-file', join(folder, 'key'), '--into', join(folder, 'pull')];
      const args = ['pull', '--base-url', url, ...files, '--full', '--follow'];
      pull = runProgram(args, settings, { isKept: true });
    },
    /** Has both others read to the end. */
    async read(typescriptFrom: string, pythonFrom: string, since: string): Promise<void> {
      const env = { BASE_URL: typescriptFrom, SINCE: since, COPY: 'typescript' };
      await run([process.execPath, 'client.ts', '--once'], env);
      await run(['python3', 'client.py', '--once'], { BASE_URL: pythonFrom, COPY: 'python' });
    },
    copies: () => ({
      typescript: stored('typescript', 'detection'),
      pull: stored('pull', 'detections'),
      python: stored('python', 'detection'),
    }),
  };
}

/** The texts of detections by id, without what a comparison leaves out by the client guide. */
export function comparable(detections: readonly { readonly id: string }[]): Map<string, string> {
  const unequal = { event: undefined, last_scored_at: undefined, exported_at: undefined };
  const texts = detections.map((shown) => [shown.id, JSON.stringify({ ...shown, ...unequal })] as const);
  return new Map(texts);
}

/** @throws AssertionError with the first texts that differ */
export function assertSame(actual: Map<string, string>, expected: Map<string, string>, what: string): void {
  const ids = [...new Set([...actual.keys(), ...expected.keys()])];
  const differing = ids.filter((id) => actual.get(id) !== expected.get(id)).slice(0, 3);
  const of = (rows: typeof actual) => differing.map((id) => rows.get(id));
  assert.deepEqual(of(actual), of(expected), what);
}
