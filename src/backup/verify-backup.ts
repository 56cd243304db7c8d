/** Whether a backup is intact: every checksum, every entry, and that the log reaches the end that it names. */
import { existsSync, readFileSync } from 'node:fs';
import { type Commit, type Mark, SNAPSHOT } from '../history/format.ts';
import { isLogError } from '../history/log-error.ts';
import { entriesAfter } from '../history/log-reader.ts';
import { Refused, reasonOf } from '../refused.ts';
import { dataFolder } from '../store/folder.ts';
import { SECRET_BYTES } from '../store/secret.ts';
import { readState, sha256 } from './backup-state.ts';
import { requireAccess } from './source.ts';

export interface VerifiedBackup {
  /** The backup folder, or the data folder. */
  readonly path: string;
  /** When it was last updated; null if that is not known, as for a data folder. */
  readonly at: string | null;
  /** Entries of the log. */
  readonly entries: number;
  /** What is wrong with it, in words; empty if nothing is. */
  readonly findings: readonly string[];
}

type OnProgress = (what: string, done: number, total: number) => void;

/** @param path the folder that contains the logs */
export function verifyBackup(path: string, onProgress: OnProgress): VerifiedBackup {
  const folder = dataFolder(path);
  const findings: string[] = [];
  const guard = <Result>(work: () => Result): Result | null => {
    try {
      return work();
    } catch (error) {
      if (!isLogError(error) && !(error instanceof Refused)) throw error;
      findings.push(reasonOf(error));
      return null;
    }
  };
  const state = guard(() => readState(path));
  const entries = guard(() => readThrough(folder.log, state?.log ?? null, onProgress))?.entry ?? 0;
  guard(() => requireAccess(folder.access, state?.access ?? null));
  guard(() => checkSecret(folder.secret, state?.secret_sha256 ?? null));
  return { path, at: state?.at ?? null, entries, findings };
}

/** @param end an entry that must be there; @returns the last one */
function readThrough(log: string, end: Mark | null, onProgress: OnProgress): Commit | null {
  let last: Commit | null = null;
  let hasEnd = end === null;
  for (const { segment, part, bytes } of entriesAfter(log, null)) {
    // Unpacks them: a matching checksum does not prove that they can be read.
    if (part.lines.length === 0 && part.kind === 'lines')
      throw new Refused('failed', `${segment.path} is empty`);
    if (part.kind !== 'commit') continue;
    last = part.commit;
    // A snapshot may have taken the place of the entries up to it.
    hasEnd ||= last.id === end?.id || (last.operation.kind === SNAPSHOT && last.entry > (end?.entry ?? 0));
    onProgress('reading the log', bytes, 0);
  }
  if (!hasEnd)
    throw new Refused('failed', `${log} does not reach entry ${end?.entry}, the last one of the backup`);
  return last;
}

function checkSecret(path: string, expected: string | null): void {
  const secret = existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
  if (secret.length !== SECRET_BYTES || (expected !== null && sha256(secret) !== expected))
    throw new Refused('failed', `${path} is missing or damaged`);
}
