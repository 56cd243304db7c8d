/** The status of ingest, which any process can read from the databases and the drop folder. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type ExportName, perExport } from '../detection/content-type.ts';
import type { Database } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { isLocked } from '../store/locks.ts';
import { DAY_MS, formatMs } from '../time.ts';
import { NOTHING_READ, type Reach, readReach } from '../windows/reach.ts';
import { isRecorded } from './drop/finished-file.ts';
import { exportFilesOf } from './drop/waiting-names.ts';
import {
  applyingFiles,
  type FileDocument,
  fileDocument,
  filesNotApplied,
  newestFiles,
} from './file-record.ts';
import { readPause } from './pause.ts';
import { type ReadingNote, readReadingNote } from './reading-note.ts';

const WAITING_SHOWN_MAX = 3;

export interface IngestSources {
  readonly folder: DataFolder;
  /** The drop folder, absolute. */
  readonly drop: string;
  /** Exports that are switched on. */
  readonly enabled: ReadonlySet<ExportName>;
  readonly access: Database;
  /** Null where nothing was ever ingested. */
  readonly detections: Database | null;
}

/** Of `ingest status`, and a part of `status` and of the console's overview. */
export interface IngestStatus {
  readonly running: boolean;
  readonly paused_since: string | null;
  readonly drop: string;
  /** Export files in the drop folder, and those that were taken and have no record yet. */
  readonly waiting: number;
  /** Their names, in the order in which they are read: the first ones. */
  readonly waiting_files: readonly string[];
  readonly exports: Record<ExportName, { enabled: boolean } & Reach>;
  /** The long file that is being read; null: there is none. */
  readonly reading: ReadingNote | null;
  /** A backfill that is being applied. */
  readonly applying: readonly { file: string; rows: number; rows_applied: number }[];
  readonly files: readonly FileDocument[];
  /** Files of the last day that were not applied, the newest first. */
  readonly not_applied: readonly FileDocument[];
}

/** @param filesMax how many of the newest files */
export function ingestStatus(sources: IngestSources, filesMax: number, nowMs: number): IngestStatus {
  const { folder, drop, enabled, access, detections: db } = sources;
  const pause = readPause(access);
  const running = isLocked(folder.serveLock);
  const isKnown = (number: number, name: string) => db !== null && isRecorded(db, number, name);
  const waiting = exportFilesOf(namesIn(drop), namesIn(join(drop, '.taken')), isKnown);
  const exportState = (name: ExportName) => ({
    enabled: enabled.has(name),
    ...(db === null ? NOTHING_READ : readReach(db, name, nowMs)),
  });
  return {
    running,
    paused_since: pause === null ? null : formatMs(pause),
    drop,
    waiting: waiting.length,
    waiting_files: waiting.slice(0, WAITING_SHOWN_MAX).map(({ name }) => name),
    exports: perExport(exportState),
    reading: running ? readReadingNote(folder, nowMs) : null,
    applying: (db === null ? [] : applyingFiles(db)).map((record) => ({
      file: record.name,
      rows: record.report.rows ?? 0,
      rows_applied: record.rows_applied,
    })),
    files: (db === null ? [] : newestFiles(db, filesMax)).map(fileDocument),
    not_applied: (db === null ? [] : filesNotApplied(db, nowMs - DAY_MS, filesMax)).map(fileDocument),
  };
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}
