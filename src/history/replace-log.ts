/**
 * Puts a rewritten log in place (compact.ts). Its first segment is written and verified in `log/draft/`; one rename, to a
 * name that makes earlier segments obsolete, decides.
 *
 * | a crash leaves | the next start |
 * |---|---|
 * | the draft | deletes it |
 * | the snapshot, and segments that it replaced | deletes those segments |
 */
import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { syncFolder } from '../store/folder.ts';
import { obsoleteSegments, segmentPath, snapshotPath } from './segment.ts';

/** The folder for the draft; call {@link tidyLog} first. */
export function draftOf(log: string): string {
  return join(log, 'draft');
}

/** Makes the draft of a snapshot, which is durable and verified, the beginning of the log. @param entry its number */
export function replaceLog(log: string, entry: number): void {
  renameSync(segmentPath(draftOf(log), entry), snapshotPath(log, entry));
  // Before a segment goes that it replaces.
  syncFolder(log);
  tidyLog(log);
}

/** Deletes what a compaction left, whether it had replaced the log or not. */
export function tidyLog(log: string): void {
  const obsolete = obsoleteSegments(log);
  for (const { path } of obsolete) rmSync(path);
  if (obsolete.length > 0) syncFolder(log);
  rmSync(draftOf(log), { recursive: true, force: true });
}
