/** Checks `access.db` and compares it with its log: it is small enough to do so in memory, in one short read. */

import { existsSync } from 'node:fs';
import { reasonOf } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import { type Database, openDatabase, reading } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { requireSchema } from '../store/schema.ts';
import { differingTables } from './access-log.ts';
import { isLogError, LogFailure } from './log-error.ts';
import { type ScrubFindings, throwUnlessOfContent } from './scrub-findings.ts';

const PROBLEMS_MAX = 20;

export function checkAccess({ access, accessLog }: DataFolder, findings: ScrubFindings): void {
  if (!existsSync(access)) {
    findings.add('database malformed', `${access} is missing`);
    return;
  }
  try {
    using db = openDatabase(access, 'inspect');
    requireSchema(db, access, ACCESS_SCHEMA);
    compare(db, accessLog, findings);
  } catch (error) {
    if (!isLogError(error)) throwUnlessOfContent(error, access);
    if (error instanceof LogFailure && !error.isOfContent) throwUnlessOfContent(error.cause, error.path);
    findings.add(isLogError(error) ? 'log damaged' : 'database malformed', `access.db: ${reasonOf(error)}`);
  }
}

function compare(db: Database, accessLog: string, findings: ScrubFindings): void {
  const problems = db.prepare<unknown[], { integrity_check: string }>(
    `PRAGMA integrity_check(${PROBLEMS_MAX})`,
  );
  reading(db, () => {
    for (const { integrity_check: problem } of problems.all())
      if (problem !== 'ok') findings.add('database malformed', `access.db: ${problem}`);
    // Not up to the end of the log: a running command may be about to commit the last entry.
    for (const table of tablesThatDiffer(db, accessLog))
      findings.add('row differs', `access.db: its table ${table} differs from the log`);
  });
}

/** A failed read of the log is repeated once: only if it fails again may it be damage. */
function tablesThatDiffer(db: Database, accessLog: string): string[] {
  try {
    return differingTables(db, accessLog);
  } catch (error) {
    if (!(error instanceof LogFailure)) throw error;
    return differingTables(db, accessLog);
  }
}
