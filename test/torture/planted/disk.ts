/** Missing syncs, and steps in the wrong order: a power cut would lose data. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const DISK_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('history/log-writer.ts', [
    ['      fsyncSync(this.#file ?? -1);\n', '', 'an entry is durable once it is decided', 'durability'],
    ['      syncFolder(folder);\n', '', 'a new segment has its name on the disk', 'durability'],
    [
      '      syncFolder(dirname(folder));\n',
      '',
      'the folder of a log has its name on the disk',
      'durability',
    ],
    ['      fsyncSync(this.#file);\n', '', 'an entry that was taken back stays so', 'durability'],
  ]),
  ...faultsIn('history/log-reader.ts', [
    ['    fsyncSync(target);\n', '', 'a start relies on what is on the disk', 'durability'],
    [
      '      renameSync(draft, segment.path);\n      syncFolder(folder);\n',
      '      renameSync(draft, segment.path);\n',
      'a start relies on what is on the disk',
      'durability',
    ],
  ]),
  ...faultsIn('history/recover.ts', [
    ['  syncFile(draft);\n', '', 'a database made anew is on the disk before it has its name', 'durability'],
    [
      '    if (tail.isTorn || tail.segment !== null) trustTail(folder.log, tail);\n',
      '',
      'a start applies only what is on the disk',
      'durability',
    ],
  ]),
  ...faultsIn('history/open-access.ts', [
    ['  syncFile(draft);\n', '', 'access.db is on the disk before it has its name', 'durability'],
    ['  syncFolder(root);\n', '', 'access.db keeps its name', 'durability'],
    [
      "  trustTail(accessLog, findTail(accessLog, 'access'));\n",
      '',
      'access.db is made only of what is on the disk',
      'durability',
    ],
  ]),
  ...faultsIn('history/purge.ts', [
    [
      '  fsyncSync(file);\n',
      '',
      'a rewritten segment is on the disk before it takes its place',
      'durability',
    ],
    ['      syncFolder(folder);\n', '', 'a rewritten segment keeps its place', 'durability'],
  ]),
  ...faultsIn('history/replace-log.ts', [
    [
      '-new`);\n  syncFolder(dirname(log));\n',
      '-new`);\n',
      'a new log has its name before the old one goes',
      'durability',
    ],
    [
      '  renameSync(fresh, log);\n  syncFolder(dirname(log));\n',
      '  renameSync(fresh, log);\n',
      'a new log keeps its place',
      'durability',
    ],
  ]),
  ...faultsIn('store/secret.ts', [
    ['    fsyncSync(file);\n', '', 'the secret is on the disk before it has its name', 'durability'],
  ]),
  ...faultsIn('store/folder.ts', [
    [
      '  syncFolder(dirname(path));\n  return isOurs;\n',
      '  return isOurs;\n',
      'the secret keeps its name',
      'durability',
    ],
    [
      '    writeFileSync(file, content);\n    fsyncSync(file);\n',
      '    writeFileSync(file, content);\n',
      'a small file is on the disk before it has its name',
      'durability',
    ],
    [
      '  renameSync(draft, path);\n  syncFolder(dirname(path));\n  return Buffer',
      '  renameSync(draft, path);\n  return Buffer',
      'a small file keeps its name',
      'durability',
    ],
    ['      syncName(path);\n', ';\n', 'a data folder keeps its name', 'durability'],
  ]),
  ...faultsIn('store/database.ts', [
    [
      '    db.pragma(`synchronous = ',
      '    if (false) db.pragma(`synchronous = ',
      'a change of access.db that was told is on the disk',
      'durability',
    ],
  ]),
  ...faultsIn('backup/log-copy.ts', [
    ['    fsyncSync(target);\n', '', 'a backup names what is on the disk', 'durability'],
    ['    syncFolder(options.to);\n', '', 'segments of a backup are replaced in their order', 'durability'],
    ['  syncFolder(dirname(to));\n', '', 'the log of a backup has its name', 'durability'],
    ['  syncFolder(aside);\n', '', 'a replaced segment is kept', 'durability'],
    ['  syncFolder(dirname(aside));\n', '', 'a replaced segment is kept', 'durability'],
  ]),
  ...faultsIn('backup/write-backup.ts', [
    [
      '0o700 });\n    syncFolder(dirname(target));\n',
      '0o700 });\n',
      'the folder of a backup has its name',
      'durability',
    ],
    [
      '      syncFolder(dirname(target));\n',
      '',
      'a backup in a file takes the place of another',
      'durability',
    ],
  ]),
  ...faultsIn('backup/branch.ts', [['    syncFolder(folder);\n', '', 'a branch has its name', 'durability']]),
  ...faultsIn('backup/tar-file.ts', [
    [', flush: true', '', 'a backup in a file is on the disk before it has its name', 'durability'],
    ['    syncFile(join(folder, name));\n', '', 'what is unpacked is on the disk', 'durability'],
  ]),
  ...faultsIn('backup/source.ts', [
    ['  syncFile(stage.secret);\n', '', 'a restored secret is on the disk', 'durability'],
  ]),
  ...faultsIn('backup/restored-state.ts', [
    ['    syncFile(stage.access);\n', '', 'a restored access.db is on the disk', 'durability'],
    ['    syncFile(stage.detections);\n', '', 'a restored detections.db is on the disk', 'durability'],
  ]),
  ...faultsIn('backup/restore.ts', [
    [
      '      syncFolder(folder.root);\n',
      '',
      'the rename that decides a restore is on the disk',
      'durability',
    ],
  ]),
  ...faultsIn('store/complete-restore.ts', [
    ['    syncFolder(join(root, aside));\n', '', 'what is moved aside by a restore is kept', 'durability'],
    ['      syncFolder(from);\n', '', 'a restore places each file once', 'durability'],
    [
      '      syncFolder(from);\n      syncFolder(root);\n',
      '      syncFolder(from);\n',
      'a restore places each file before the next',
      'durability',
    ],
  ]),
  ...faultsIn('ingest/drop/drop-folder.ts', [
    ['    syncFile(path);\n', '', 'a taken file is on the disk before its entry', 'ready-files'],
    [
      "    syncFolder(join(this.root, '.taken'));\n",
      '',
      'a taken file has its name before its entry',
      'durability-program',
    ],
    ['    syncName(root);\n', '', "the archive's folders have their names", 'durability-program'],
  ]),
  ...faultsIn('ingest/drop/finished-file.ts', [
    ['  syncFolder(dirname(target));\n', '', 'an archived file stays archived', 'durability-program'],
    [
      '  syncFolder(dirname(target));\n  syncFolder(dirname(taken));\n',
      '  syncFolder(dirname(target));\n',
      'an archived file is in one place',
      'durability-program',
    ],
    [
      '      syncFolder(dirname(taken));\n      rmSync(',
      '      rmSync(',
      'a failed file goes where its record says',
      'durability-program',
    ],
  ]),
  ...faultsIn('ingest/threads/reader-thread.ts', [
    ['      fsyncSync(file);\n', '', 'rows that were left out are kept', 'durability-program'],
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
      'the log has an entry before the database has it',
      'durability',
    ],
    ['        setLogMark(db, entry);\n', '', 'a database names the last entry it has applied', 'durability'],
  ]),
  ...faultsIn('history/access-log.ts', [
    [
      'setLogMark(db, log.commit(lines, operation, now()));',
      'log.commit(lines, operation, now());',
      'access.db names the last entry it has applied',
      'durability',
    ],
  ]),
];
