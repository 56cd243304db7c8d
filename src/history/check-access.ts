/** Whether `access.db` is sound, and what its log says: small enough to be compared in memory, in one short read. */
import { existsSync } from 'node:fs';
import { reasonOf } from '../refused.ts';
import { ACCESS_SCHEMA, ACCESS_TABLES } from '../store/access-schema.ts';
import { type Database, openInspector, reading } from '../store/database.ts';
import { isDiskFull } from '../store/database-errors.ts';
import type { DataFolder } from '../store/folder.ts';
import { type LogMark, readLogMark } from '../store/log-mark.ts';
import { requireSchema } from '../store/schema.ts';
import { openRehearsal } from '../store/writer.ts';
import { EffectApplier } from './effects.ts';
import { isObject, parse } from './format.ts';
import { isLogError, LogDamage } from './log-error.ts';
import { entriesAfter } from './log-reader.ts';
import type { ScrubFindings } from './scrub-findings.ts';

const PROBLEMS_MAX = 20;

export function checkAccess({ access, accessLog }: DataFolder, findings: ScrubFindings): void {
  if (!existsSync(access)) {
    findings.add('database malformed', `${access} is missing`);
    return;
  }
  let db: Database | null = null;
  let copy: Database | null = null;
  try {
    db = openInspector(access);
    requireSchema(db, access, ACCESS_SCHEMA);
    copy = openRehearsal(null, ACCESS_SCHEMA);
    compare(db, copy, accessLog, findings);
  } catch (error) {
    if (isDiskFull(error)) throw error;
    findings.add(isLogError(error) ? 'log damaged' : 'database malformed', `access.db: ${reasonOf(error)}`);
  } finally {
    copy?.close();
    db?.close();
  }
}

function compare(db: Database, copy: Database, accessLog: string, findings: ScrubFindings): void {
  const problems = db.prepare<unknown[], { integrity_check: string }>(
    `PRAGMA integrity_check(${PROBLEMS_MAX})`,
  );
  reading(db, () => {
    for (const { integrity_check: problem } of problems.all())
      if (problem !== 'ok') findings.add('database malformed', `access.db: ${problem}`);
    copy.transaction(() => applyUpTo(copy, accessLog, readLogMark(db)))();
    for (const table of ACCESS_TABLES)
      if (rowsOf(db, table) !== rowsOf(copy, table))
        findings.add('row differs', `access.db: its table ${table} is not what the log says`);
  });
}

/** Later entries may be of a command that is about to commit them. */
function applyUpTo(copy: Database, accessLog: string, mark: LogMark | null): void {
  if (mark === null) return;
  const applier = new EffectApplier(copy, ACCESS_TABLES);
  for (const { part } of entriesAfter(accessLog, 'access', null)) {
    for (const line of part.lines) {
      const effect = parse(line);
      if (!isObject(effect) || !applier.apply(effect))
        throw new LogDamage('a line says nothing that this program knows');
    }
    if (part.kind === 'commit' && part.commit.id === mark.id) return;
  }
  throw new LogDamage(`its log does not have entry ${mark.entry}, which it has applied`);
}

function rowsOf(db: Database, table: string): string {
  const rows = db.prepare<unknown[], object>(`SELECT * FROM ${table}`).all();
  return rows
    .map((row) => JSON.stringify(row))
    .sort()
    .join('\n');
}
