/** The result of the last scrub, in a file of the data folder: for the next start, status and metrics. */
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import type { DataFolder } from '../store/folder.ts';
import { formatMs, parseInstant } from '../time.ts';
import { isObject } from './format.ts';
import type { ScrubResult } from './scrub.ts';
import { FINDING_KINDS, type FindingKindName, type ScrubFinding } from './scrub-findings.ts';

export interface ScrubRecord extends ScrubResult {
  /** Epoch milliseconds. */
  readonly at: number;
  /** Of the detections.db that was compared: a rebuilt one is another file. */
  readonly inode: number | null;
}

/** @returns null if there is none, or the file cannot be read: the next scrub writes it again */
export function readScrubRecord({ verified }: Pick<DataFolder, 'verified'>): ScrubRecord | null {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(verified, 'utf8'));
  } catch {
    return null;
  }
  if (!isObject(value) || typeof value.verified_at !== 'string' || !Array.isArray(value.findings))
    return null;
  const at = parseInstant(value.verified_at);
  if (at === null) return null;
  return {
    at,
    inode: typeof value.inode === 'number' ? value.inode : null,
    entry: typeof value.entry === 'number' ? value.entry : null,
    not_compared: typeof value.not_compared === 'string' ? value.not_compared : null,
    findings: value.findings.flatMap(findingOf),
  };
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

function findingOf(value: unknown): ScrubFinding[] {
  if (!isObject(value) || !isKind(value.kind) || typeof value.count !== 'number') return [];
  const first = Array.isArray(value.first) ? value.first.map(String) : [];
  return [{ kind: value.kind, count: value.count, first }];
}

function isKind(value: unknown): value is FindingKindName {
  return typeof value === 'string' && Object.hasOwn(FINDING_KINDS, value);
}
