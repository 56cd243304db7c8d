/** The result of the last scrub, in a file of the data folder: for the next start, status and metrics. */
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { DataFolder } from '../store/folder.ts';
import { formatMs, parseInstant } from '../time.ts';
import type { ScrubResult } from './scrub.ts';
import { findingKinds } from './scrub-findings.ts';

const Record = Type.Object({
  verified_at: Type.String(),
  /** Of the detections.db that was compared: a rebuilt one is another file. */
  inode: Type.Union([Type.Number(), Type.Null()]),
  entry: Type.Union([Type.Number(), Type.Null()]),
  not_compared: Type.Union([Type.String(), Type.Null()]),
  findings: Type.Array(
    Type.Object({
      kind: Type.Union(findingKinds().map((kind) => Type.Literal(kind))),
      count: Type.Number(),
      first: Type.Array(Type.String()),
    }),
  ),
});

export interface ScrubRecord extends ScrubResult {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly inode: Static<typeof Record>['inode'];
}

/** @returns null if there is none, or the file cannot be read: the next scrub writes it again */
export function readScrubRecord({ verified }: Pick<DataFolder, 'verified'>): ScrubRecord | null {
  try {
    const { verified_at, ...record } = Value.Parse(Record, JSON.parse(readFileSync(verified, 'utf8')));
    const at = parseInstant(verified_at);
    return at === null ? null : { at, ...record };
  } catch {
    return null;
  }
}

export function writeScrubRecord(
  folder: Pick<DataFolder, 'verified' | 'detections'>,
  { entry, findings, not_compared }: ScrubResult,
  nowMs: number,
): void {
  const { verified } = folder;
  const draft = `${verified}-${process.pid}`;
  const record = { verified_at: formatMs(nowMs), inode: inodeOf(folder), entry, findings, not_compared };
  writeFileSync(draft, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 });
  renameSync(draft, verified);
}

export function inodeOf({ detections }: Pick<DataFolder, 'detections'>): number | null {
  return statSync(detections, { throwIfNoEntry: false })?.ino ?? null;
}
