/** Missing syncs, and steps in the wrong order: a power cut would lose data. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const DISK_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('history/log-writer.ts', [
    [
      '      fsyncSync(this.#file ?? -1);\n',
      '',
      'an entry is durable before its transaction commits',
      'durability',
    ],
    ['      syncFolder(folder);\n', '', 'the name of a new segment is synced', 'durability'],
    ['      syncFolder(dirname(folder));\n', '', "the name of a log's folder is synced", 'durability'],
  ]),
  ...faultsIn('history/log-reader.ts', [
    ['  fsyncSync(target.fd);\n', '', 'a start relies only on synced data', 'durability'],
    [
      '      renameSync(draft, segment.path);\n      syncFolder(folder);\n',
      '      renameSync(draft, segment.path);\n',
      'a start relies only on synced data',
      'durability',
    ],
  ]),
  ...faultsIn('history/recover.ts', [
    ['  syncFile(draft);\n', '', 'a rebuilt database is synced before it gets its name', 'durability'],
    [
      '    if (tail.isTorn || tail.segment !== null) trustTail(folder.log, tail);\n',
      '',
      'a start applies only synced entries',
      'durability',
    ],
  ]),
  ...faultsIn('auth/spare-copy.ts', [
    [
      '    rmSync(folder.spare, { force: true });\n',
      '',
      'a spare copy that is not up to date is deleted',
      'spare-copy',
    ],
  ]),
  ...faultsIn('history/segment.ts', [
    [
      '  syncFolder(log);\n  tidyLog',
      '  tidyLog',
      'a rewritten log has its name before the old one goes',
      'durability',
    ],
  ]),
  ...faultsIn('store/secret.ts', [
    [', flush: true', '', 'the secret is synced before it gets its name', 'durability'],
  ]),
  ...faultsIn('store/folder.ts', [
    [
      '  syncFolder(dirname(path));\n  return isOurs;\n',
      '  return isOurs;\n',
      'the name of the secret is synced',
      'durability',
    ],
    ['{ mode, flush: true }', '{ mode }', 'a small file is synced before it gets its name', 'durability'],
    [
      '  renameSync(draft, path);\n  syncFolder(dirname(path));\n  return Buffer',
      '  renameSync(draft, path);\n  return Buffer',
      'the name of a small file is synced',
      'durability',
    ],
    ['      syncName(path);\n', ';\n', 'the name of a data folder is synced', 'durability'],
  ]),
  ...faultsIn('store/database.ts', [
    [
      '    db.pragma(`synchronous = ',
      '    if (false) db.pragma(`synchronous = ',
      'a confirmed change of access.db is durable',
      'durability',
    ],
  ]),
  ...faultsIn('backup/log-copy.ts', [
    [' fsyncSync(target.fd);\n', ' ;\n', 'the state file of a backup names only synced data', 'durability'],
    ['        syncFolder(to);\n', '', 'segments of a backup are replaced in order', 'durability'],
    ['  syncFolder(dirname(to));\n', '', "the name of a backup's log is synced", 'durability'],
  ]),
  ...faultsIn('backup/write-backup.ts', [
    [
      '0o700 });\n    syncFolder(dirname(target));\n',
      '0o700 });\n',
      "the name of a backup's folder is synced",
      'durability',
    ],
    ['  requireOwner(folder);\n', '', 'root makes no backup that the service cannot continue', 'data-folder'],
  ]),
  ...faultsIn('backup/source.ts', [
    ['  syncFile(stage.secret);\n', '', 'a restored secret is synced', 'durability'],
  ]),
  ...faultsIn('backup/restore.ts', [
    ['  syncFile(stage.access);\n', '', 'a restored access.db is synced', 'durability'],
    ['    syncFile(stage.detections);\n', '', 'a restored detections.db is synced', 'durability'],
  ]),
  ...faultsIn('backup/restore.ts', [
    ['      syncFolder(folder.root);\n', '', 'the rename that commits a restore is synced', 'durability'],
  ]),
  ...faultsIn('store/complete-restore.ts', [
    ['    syncFolder(join(root, aside));\n', '', 'files moved aside by a restore are kept', 'durability'],
    ['      syncFolder(from);\n', '', 'a restore moves each file once', 'durability'],
    [
      '      syncFolder(from);\n      syncFolder(root);\n',
      '      syncFolder(from);\n',
      'a restore syncs each move before the next',
      'durability',
    ],
  ]),
  ...faultsIn('ingest/drop/drop-folder.ts', [
    ['      fsyncSync(file.fd);\n', '', 'a taken file is synced before its entry', 'ready-files'],
    [
      "    syncIn(this.root, '.taken');\n",
      '',
      'the name of a taken file is synced before its entry',
      'durability-program',
    ],
  ]),
  ...faultsIn('ingest/drop/own-folder.ts', [
    ['      syncFolder(at);\n', '', "the names of the archive's folders are synced", 'durability-program'],
  ]),
  ...faultsIn('ingest/drop/finished-file.ts', [
    [
      '  syncIn(root, dirname(destination));\n',
      '',
      'the name of an archived file is synced',
      'durability-program',
    ],
    [
      '  syncIn(root, dirname(destination));\n  syncIn(root, dirname(taken));\n',
      '  syncIn(root, dirname(destination));\n',
      'an archived file is in one place',
      'durability-program',
    ],
    [
      '      syncIn(root, dirname(taken));\n      removeIn(',
      '      removeIn(',
      'a failed file moves to the path in its record',
      'durability-program',
    ],
  ]),
  ...faultsIn('ingest/threads/reader-thread.ts', [
    ['      fsyncSync(open.fd);\n', '', 'the file of skipped rows is synced', 'durability-program'],
  ]),
  ...faultsIn('ingest/apply/window-file.ts', [
    [
      '    writer.commit(applier, fileOperation(record), () => save(files, record));\n    finishFile(files, record);\n',
      '    finishFile(files, record);\n    writer.commit(applier, fileOperation(record), () => save(files, record));\n',
      'a file is archived after its entry, not before',
      'durability-program',
    ],
  ]),
  ...faultsIn('ingest/apply/stream-writer.ts', [
    [
      '        const entry = log.commit(lines, operation, now());\n',
      "        db.exec('COMMIT');\n        db.exec('BEGIN IMMEDIATE');\n        const entry = log.commit(lines, operation, now());\n",
      'an entry is in the log before the database commits it',
      'durability',
    ],
    ['        setLogMark(db, entry);\n', '', 'a database names the last entry it has applied', 'durability'],
  ]),
];
