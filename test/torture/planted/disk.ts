/** Missing syncs, and steps in the wrong order: a power cut would lose data. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const DISK_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('log/log-writer.ts', 'durability', {
    '[-if (this.#file !== null) fsyncSync(this.#file);-]':
      'an entry is durable before its transaction commits',
    '[-syncFolder(folder);-]': 'the name of a new segment is synced',
  }),
  ...faultsIn('log/log-reader.ts', 'durability', {
    '[-fsyncSync(target.fd);-]': 'a start relies only on synced data',
  }),
  ...faultsIn('log/recover.ts', 'durability', {
    '[-syncFile(draft);-]': 'a rebuilt database is synced before it gets its name',
    '[-if (tail.isTorn || tail.segment !== null) trustTail(folder.log, tail);-]':
      'a start applies only synced entries',
  }),
  ...faultsIn('auth/spare-copy.ts', 'spare-copy', {
    '[-rmSync(folder.spare, { force: true });-]': 'a spare copy that is not up to date is deleted',
  }),
  ...faultsIn('log/segment.ts', 'durability', {
    '[-syncFolder(log);\n  -]tidyLog': 'a rewritten log has its name before the old one goes',
  }),
  ...faultsIn('store/secret.ts', 'durability', {
    '[-, flush: true-]': 'the secret is synced before it gets its name',
  }),
  ...faultsIn('store/folder.ts', 'durability', {
    '{ mode: 0o600[-, flush: true-] }': 'a small file is synced before it gets its name',
    '[-      syncName(path)-];': 'the name of a data folder is synced',
  }),
  ...faultsIn('store/database.ts', 'durability', {
    '{+if (false) +}db.pragma(`synchronous =': 'a confirmed change of access.db is durable',
  }),
  ...faultsIn('copy/back-up.ts', 'data-folder', {
    '[-requireOwner(folder);-]': 'root makes no copy that the service cannot continue',
  }),
  ...faultsIn('copy/restore.ts', 'durability', {
    '[-syncFile(stage.access);-]': 'a restored access.db is synced',
    '[-syncFolder(folder.root);-]': 'the rename that commits a restore is synced',
  }),
  ...faultsIn('store/complete-restore.ts', 'durability', {
    '[-syncFolder(join(root, aside));-]': 'files moved aside by a restore are kept',
  }),
  ...faultsIn('drop/drop-folder.ts', 'ready-files', {
    '[-fsyncSync(file.fd);-]': 'a taken file is synced before its entry',
  }),
  ...faultsIn('drop/drop-folder.ts', 'durability-program', {
    "[-syncIn(this.root, '.taken');-]": 'the name of a taken file is synced before its entry',
  }),
  ...faultsIn('ingest/files/finished-file.ts', 'durability-program', {
    '[-syncIn(root, dirname(destination));-]': 'the name of an archived file is synced',
  }),
  ...faultsIn('ingest/reading/reader-thread.ts', 'durability-program', {
    '[-fsyncSync(open.fd);-]': 'the file of skipped rows is synced',
  }),
  ...faultsIn('ingest/apply/window-file.ts', 'durability-program', {
    '[-writer.commit(applier, fileOperation(record), () => save(files, record));\n    finishFile(files, record-]{+finishFile(files, record);\n    writer.commit(applier, fileOperation(record), () => save(files, record)+});':
      'a file is archived after its entry, not before',
  }),
  ...faultsIn('ingest/apply/stream-writer.ts', 'durability', {
    "{+db.exec('COMMIT');\n        db.exec('BEGIN IMMEDIATE');\n        +}const entry = log.commit(lines, operation, now());":
      'an entry is in the log before the database commits it',
    '[-setLogMark(db, entry);-]': 'a database names the last entry it has applied',
  }),
  ...faultsIn('ingest/apply/stream-writer.ts', 'wait', {
    '[-decisions?.decide(entry, db);-]': 'a transaction that waits for the copy is not shown before',
  }),
  ...faultsIn('log/recover.ts', 'wait', {
    '[-decisions?.decide(last, db);-]': 'a start shows nothing that the copy lacks',
  }),
];
