/** `wirewatch ingest status`: the state of ingest. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { Config } from '../config/load.ts';
import { counted, grouped } from '../counted.ts';
import type { ExportName } from '../detection/content-type.ts';
import { compareFiles, judgeName } from '../ingest/export-name.ts';
import {
  applyingFiles,
  type FileRecord,
  filesNotApplied,
  findFile,
  newestFiles,
} from '../ingest/file-record.ts';
import { type ReadingNote, readReadingNote } from '../ingest/reading-note.ts';
import { readPause } from '../ingest/subscribers.ts';
import type { Database } from '../store/database.ts';
import { isLocked } from '../store/locks.ts';
import { DAY_MS, formatMs } from '../time.ts';
import { NOTHING_READ, type Reach, reachText, readReach } from '../windows/reach.ts';
import { withAccess } from './access.ts';
import { configOf, folderOf, withDetections } from './config.ts';
import { addDropOption, addExamples, commonOptions, integerValue } from './options.ts';
import { print, table } from './output.ts';

const FILES_DEFAULT = 10;
const FILES_MAX = 1000;
const WAITING_SHOWN_MAX = 3;

/** A file's record in the contract's names. */
export interface FileDocument {
  readonly number: number;
  readonly file: string;
  readonly outcome: string;
  readonly export: string | null;
  readonly window_start: string | null;
  readonly label: string | null;
  readonly taken_at: string;
  readonly finished_at: string | null;
  readonly destination: string | null;
  readonly sha256: string | null;
  readonly bytes: number;
  readonly report: FileRecord['report'];
}

export function fileDocument(record: FileRecord): FileDocument {
  return {
    number: record.number,
    file: record.name,
    outcome: record.outcome,
    export: record.export,
    window_start: record.window_start === null ? null : formatMs(record.window_start),
    label: record.label,
    taken_at: formatMs(record.taken_at),
    finished_at: record.finished_at === null ? null : formatMs(record.finished_at),
    destination: record.destination,
    sha256: record.sha256,
    bytes: record.bytes,
    report: record.report,
  };
}

/** Files in a table, the newest last. */
export function fileTable(files: readonly FileDocument[]): string {
  return table(files.toReversed(), [
    { title: 'NUMBER', value: (file) => file.number, align: 'right' },
    { title: 'FILE', value: (file) => file.file },
    { title: 'OUTCOME', value: (file) => file.outcome },
    { title: 'ROWS', value: (file) => shownCount(file.report.rows), align: 'right' },
    { title: 'CREATED', value: (file) => shownCount(file.report.created), align: 'right' },
    { title: 'UPDATED', value: (file) => shownCount(file.report.updated), align: 'right' },
    { title: 'WHY', value: (file) => file.report.reason },
  ]);
}

function shownCount(count: number | undefined): string | undefined {
  return count === undefined ? undefined : grouped(count);
}

export function registerStatus(ingest: Command): void {
  const command = ingest
    .command('status')
    .description('show whether Wirewatch is running, which files are waiting, and the files processed last')
    .option(
      '--files <number>',
      `how many of the last files to show (default: ${FILES_DEFAULT})`,
      integerValue(0, FILES_MAX),
    )
    .action((options: { files?: number }, self: Command) => {
      const files = options.files ?? FILES_DEFAULT;
      const status = withAccess(self, (access) => ingestStatus(access, configOf(self), files));
      print(status, { json: commonOptions(self).json, text: () => statusText(status) });
    });
  addDropOption(command);
  addExamples(command, ['ingest status', 'ingest status --files 100 --json']);
}

/** Of `ingest status`, and a part of `status`. */
export interface IngestStatus {
  readonly running: boolean;
  readonly paused_since: string | null;
  readonly drop: string;
  /** Export files in the drop folder, including those that were taken but are not recorded yet. */
  readonly waiting: number;
  /** The first of their names, in the order in which they are read. */
  readonly waiting_files: readonly string[];
  readonly exports: Record<ExportName, { enabled: boolean } & Reach>;
  /** The long file that is being read, and how many rows of it; null if there is none. */
  readonly reading: ReadingNote | null;
  /** A backfill that is being applied. */
  readonly applying: readonly { file: string; rows: number; rows_applied: number }[];
  readonly files: readonly FileDocument[];
  /** Files of the last day that were not applied, the newest first. */
  readonly not_applied: readonly FileDocument[];
}

/** @param filesMax how many of the newest files */
export function ingestStatus(access: Database, config: Config, filesMax: number): IngestStatus {
  const folder = folderOf(config);
  const pause = readPause(access);
  const nowMs = Date.now();
  const isRunning = isLocked(folder.serveLock);
  const ledger = withDetections(config, NOTHING_INGESTED, (db) => ({
    reach: { newswire: readReach(db, 'newswire', nowMs), imagewire: readReach(db, 'imagewire', nowMs) },
    applying: applyingFiles(db),
    files: newestFiles(db, filesMax),
    notApplied: filesNotApplied(db, nowMs - DAY_MS, filesMax),
  }));
  const waiting = withDetections(
    config,
    waitingFiles(config.ingest.drop, () => false),
    (db) => waitingFiles(config.ingest.drop, (number) => findFile(db, number) !== null),
  );
  const exportState = (name: ExportName) => ({
    enabled: config.exports[name].enabled,
    ...ledger.reach[name],
  });
  return {
    running: isRunning,
    paused_since: pause === null ? null : formatMs(pause),
    drop: config.ingest.drop,
    waiting: waiting.length,
    waiting_files: waiting.slice(0, WAITING_SHOWN_MAX),
    exports: { newswire: exportState('newswire'), imagewire: exportState('imagewire') },
    reading: isRunning ? readReadingNote(folder, nowMs) : null,
    applying: ledger.applying.map((record) => ({
      file: record.name,
      rows: record.report.rows ?? 0,
      rows_applied: record.rows_applied,
    })),
    files: ledger.files.map(fileDocument),
    not_applied: ledger.notApplied.map(fileDocument),
  };
}

const NOTHING_INGESTED: {
  reach: Record<ExportName, Reach>;
  applying: FileRecord[];
  files: FileRecord[];
  notApplied: FileRecord[];
} = { reach: { newswire: NOTHING_READ, imagewire: NOTHING_READ }, applying: [], files: [], notApplied: [] };

/** Names of the waiting export files, in the order in which they are read. */
function waitingFiles(drop: string, isRecorded: (number: number) => boolean): string[] {
  const taken = namesIn(join(drop, '.taken')).flatMap((name) => {
    const [, number, dropped = ''] = /^(\d+)\.(.+)$/s.exec(name) ?? [];
    return number === undefined || isRecorded(Number(number)) ? [] : [dropped];
  });
  const files = [...namesIn(drop), ...taken].flatMap((name) => {
    const judged = judgeName(name);
    return judged.kind === 'export' ? [judged.file] : [];
  });
  return files.sort(compareFiles).map(({ name }) => name);
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

function waitingText({ waiting, waiting_files }: IngestStatus): string {
  const more = waiting - waiting_files.length;
  const names = [...waiting_files, ...(more > 0 ? [`${grouped(more)} more`] : [])];
  return waiting === 0 ? 'no files' : `${counted(waiting, 'file')}: ${names.join(', ')}`;
}

export const NOT_RUNNING = 'not running; start it with: wirewatch serve';

export function pauseText({ paused_since }: Pick<IngestStatus, 'paused_since'>): string {
  return paused_since === null
    ? 'not paused'
    : `paused since ${paused_since}; resume with: wirewatch ingest resume`;
}

/** How many rows of a backfill have been applied. */
export function applyingText({ file, rows, rows_applied }: IngestStatus['applying'][number]): string {
  return `${file}: ${grouped(rows_applied)} of ${counted(rows, 'row')}`;
}

function statusText(status: IngestStatus): string {
  const { newswire, imagewire } = status.exports;
  const newest = (state: { enabled: boolean } & Reach) => (state.enabled ? reachText(state) : 'switched off');
  const lines = [
    `appliance    ${status.running ? 'running' : NOT_RUNNING}`,
    `ingest       ${pauseText(status)}`,
    `drop folder  ${status.drop}`,
    `waiting      ${waitingText(status)}`,
    `newswire     ${newest(newswire)}`,
    `imagewire    ${newest(imagewire)}`,
    ...(status.reading === null
      ? []
      : [`reading      ${status.reading.file}: ${counted(status.reading.rows, 'row')} so far`]),
    ...status.applying.map((file) => `backfill     ${applyingText(file)}`),
  ];
  const shown = new Set(status.files.map(({ number }) => number));
  const others = status.not_applied.filter(({ number }) => !shown.has(number));
  const tables = [
    ...(others.length === 0 ? [] : [`Files not applied in the last 24 hours:\n${fileTable(others)}`]),
    ...(status.files.length === 0 ? [] : [`Files processed last:\n${fileTable(status.files)}`]),
  ];
  return [lines.join('\n'), ...tables].join('\n\n');
}
