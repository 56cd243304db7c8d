/** `wirewatch ingest status`: where ingest stands. */
import { existsSync, readdirSync } from 'node:fs';
import type { Command } from 'commander';
import type { Config } from '../config/load.ts';
import type { ExportName } from '../detection/content-type.ts';
import { judgeName } from '../ingest/export-name.ts';
import { applyingFiles, type FileRecord, newestFiles } from '../ingest/file-record.ts';
import { readPause } from '../ingest/subscribers.ts';
import type { Database } from '../store/database.ts';
import { isLocked } from '../store/locks.ts';
import { formatMs } from '../time.ts';
import { newestDone } from '../windows/ledger.ts';
import { withAccess } from './access.ts';
import { configOf, folderOf, withDetections } from './config.ts';
import { addDropOption, addExamples, commonOptions, integerValue } from './options.ts';
import { print, table } from './output.ts';

const FILES_DEFAULT = 10;
const FILES_MAX = 1000;

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
    { title: 'ROWS', value: (file) => file.report.rows, align: 'right' },
    { title: 'CREATED', value: (file) => file.report.created, align: 'right' },
    { title: 'UPDATED', value: (file) => file.report.updated, align: 'right' },
    { title: 'WHY', value: (file) => file.report.reason },
  ]);
}

export function registerStatus(ingest: Command): void {
  const command = ingest
    .command('status')
    .description('whether the appliance runs, what waits, and the last files it dealt with')
    .option(
      '--files <number>',
      `how many of the last files are shown (default: ${FILES_DEFAULT})`,
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
  /** Export files in the drop folder. */
  readonly waiting: number;
  readonly exports: Record<ExportName, { enabled: boolean; newest_done: string | null }>;
  /** A backfill that is being applied. */
  readonly applying: readonly { file: string; rows: number; rows_applied: number }[];
  readonly files: readonly FileDocument[];
}

/** @param filesMax how many of the newest files */
export function ingestStatus(access: Database, config: Config, filesMax: number): IngestStatus {
  const folder = folderOf(config);
  const pause = readPause(access);
  const ledger = withDetections(config, NOTHING_INGESTED, (db) => ({
    newest: { newswire: newestDone(db, 'newswire'), imagewire: newestDone(db, 'imagewire') },
    applying: applyingFiles(db),
    files: newestFiles(db, filesMax),
  }));
  const exportState = (name: ExportName) => {
    const end = ledger.newest[name];
    return { enabled: config.exports[name].enabled, newest_done: end === null ? null : formatMs(end) };
  };
  return {
    running: isLocked(folder.serveLock),
    paused_since: pause === null ? null : formatMs(pause),
    drop: config.ingest.drop,
    waiting: countWaiting(config.ingest.drop),
    exports: { newswire: exportState('newswire'), imagewire: exportState('imagewire') },
    applying: ledger.applying.map((record) => ({
      file: record.name,
      rows: record.report.rows ?? 0,
      rows_applied: record.rows_applied,
    })),
    files: ledger.files.map(fileDocument),
  };
}

const NOTHING_INGESTED: {
  newest: Record<ExportName, number | null>;
  applying: FileRecord[];
  files: FileRecord[];
} = { newest: { newswire: null, imagewire: null }, applying: [], files: [] };

function countWaiting(drop: string): number {
  if (!existsSync(drop)) return 0;
  return readdirSync(drop).filter((name) => judgeName(name).kind === 'export').length;
}

function statusText(status: IngestStatus): string {
  const { newswire, imagewire } = status.exports;
  const newest = (state: { enabled: boolean; newest_done: string | null }) =>
    state.enabled ? (state.newest_done ?? 'no window finished yet') : 'switched off';
  const lines = [
    `appliance    ${status.running ? 'running' : 'not running; start it with: wirewatch serve'}`,
    `ingest       ${status.paused_since === null ? 'not paused' : `paused since ${status.paused_since}; go on with: wirewatch ingest resume`}`,
    `drop folder  ${status.drop}`,
    `waiting      ${status.waiting} ${status.waiting === 1 ? 'file' : 'files'}`,
    `newswire     ${newest(newswire)}`,
    `imagewire    ${newest(imagewire)}`,
    ...status.applying.map(
      ({ file, rows, rows_applied }) => `backfill     ${file}: ${rows_applied} of ${rows} rows`,
    ),
  ];
  return `${lines.join('\n')}\n${status.files.length > 0 ? `\n${fileTable(status.files)}\n` : ''}`;
}
