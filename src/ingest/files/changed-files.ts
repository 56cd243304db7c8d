/**
 * Archived files whose writer still has them open, and writes to them after they were read. Each that has changed goes
 * back to `.taken/`, without a record, and is read like any other: as a correction.
 */
import { dirname } from 'node:path';
import { monotonicMs } from '../../clock.ts';
import { reasonOfFile } from '../../drop/file-errors.ts';
import { renameIn, syncIn } from '../../drop/own-folder.ts';
import type { FileSnapshot } from '../../exports/unpacking.ts';
import { paced } from '../../pace.ts';
import { HOUR_MS } from '../../time.ts';
import { appliedSince, type FileRecord, saveFile } from './file-record.ts';
import type { Ingest } from './finished-file.ts';

/** So long after a file was finished, and so many of the newest files, are looked at. */
const LOOKED_AT_MS = 3 * HOUR_MS;
const FILES_MAX = 200;
/** How long the alert stays open after the last change. */
const SHOWN_MS = paced(HOUR_MS);

/** @param everyMs between two looks: a look reads the state of up to {@link FILES_MAX} files */
export function changedFiles(files: Ingest, everyMs: number) {
  const { drop, writer, now, setCondition } = files;
  /** The times of the files as they were read or first looked at, by ingest number; their sizes are in their records. */
  let times = new Map<number, bigint>();
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  let foundAtMs = Number.NEGATIVE_INFINITY;

  /** @param next gets the time of a file that has not changed; @returns what is said of one that has; null: it has not */
  function look(record: FileRecord, next: Map<number, bigint>): string | null {
    const { number, bytes, destination } = record;
    if (destination === null) return null;
    try {
      const snapshot = drop.snapshot(destination);
      if (typeof snapshot === 'string') return null;
      const time = times.get(number) ?? snapshot.mtimeNs;
      next.set(number, time);
      if (Number(snapshot.size) === bytes && snapshot.mtimeNs === time) return null;
      readAgain(files, record, destination);
      return 'its writer changed it after it was read; it is read again';
    } catch (error) {
      return `it cannot be looked at or read again after it was read: ${reasonOfFile(error)}`;
    }
  }

  return {
    note: ({ number }: FileRecord, { mtimeNs }: FileSnapshot) => void times.set(number, mtimeNs),
    /** Looks if it is time to: call it before a scan, which then finds what is read again. @throws if the disk is full */
    run(): void {
      const nowMs = monotonicMs();
      if (nowMs - lookedAtMs < everyMs) return;
      lookedAtMs = nowMs;
      const since = now() - LOOKED_AT_MS;
      const next = new Map<number, bigint>();
      for (const record of appliedSince(writer.db, since, FILES_MAX)) {
        const reason = look(record, next);
        if (reason === null) continue;
        foundAtMs = nowMs;
        setCondition('file changed after reading', `${record.name}: ${reason}`);
      }
      times = next;
      if (nowMs - foundAtMs >= SHOWN_MS) setCondition('file changed after reading', null);
    },
  };
}

/** A crash before the record is changed leaves a file in `.taken/` that the start moves back, and the next look finds. */
function readAgain({ drop, writer, log }: Ingest, record: FileRecord, destination: string): void {
  const { number, name } = record;
  const taken = drop.takenPath(number, name);
  renameIn(drop.root, destination, taken);
  syncIn(drop.root, dirname(taken));
  syncIn(drop.root, dirname(destination));
  // Its rows count with those of the next reading.
  const report = { ...record.report, reason: 'the file was changed after it was read, and is read again' };
  const again = { ...record, outcome: 'repeated', report, destination: null } as const;
  writer.write({ kind: 'file changed after reading', file: number, name }, () => saveFile(writer.db, again));
  log('warn', 'a file was changed after it was read: reading it again', { number, file: name });
}
