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
  }),
  ...faultsIn('store/folder.ts', 'durability', {
    '[-      syncName(path)-];': 'the name of a data folder is synced',
  }),
  ...faultsIn('store/database.ts', 'durability', {
    '{+if (false) +}db.pragma(`synchronous =': 'a confirmed change of access.db is durable',
  }),
  ...faultsIn('copy/restore.ts', 'durability', {
    '[-syncFolder(root);-]': 'the rename that commits a restore is synced',
  }),
  ...faultsIn('drop/drop-folder.ts', 'ready-files', {
    '[-fsyncSync(file.fd);-]': 'a taken file is synced before its entry',
  }),
  ...faultsIn('drop/drop-folder.ts', 'durability-program', {
    "[-syncIn(this.root, '.taken');-]": 'the name of a taken file is synced before its entry',
  }),
  ...faultsIn('ingest/apply/window-file.ts', 'durability-program', {
    '[-writer.commit(applier, fileOperation(record), () => save(files, record));\n    finishFile(files, record-]{+finishFile(files, record);\n    writer.commit(applier, fileOperation(record), () => save(files, record)+});':
      'a file is archived after its entry, not before',
  }),
  ...faultsIn('ingest/apply/stream-writer.ts', 'durability', {
    "{+db.exec('COMMIT');\n        db.exec('BEGIN IMMEDIATE');\n        +}const entry = log.commit(lines, operation, now());":
      'an entry is in the log before the database commits it',
  }),
  ...faultsIn('ingest/apply/stream-writer.ts', 'wait', {
    '[-decisions?.decide(entry, db);-]': 'a transaction that waits for the copy is not shown before',
  }),
];
