/** Faults in the log, its recovery, removal and backup: what is not compared, not cut, not marked. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const LOG_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('history/segment.ts', [
    [' || !isFrameIntact(header, packed)', '', 'the checksum of a frame is compared', 'history-log'],
    ['if (frames !== found.frames || ', 'if (', 'an entry has all its frames', 'history-log'],
    [' || checksum !== found.checksum', '', 'an entry has its own frames', 'history-log'],
    ['if (entry !== (previous?.entry ?? 0) + 1 || ', 'if (', 'entries follow without a gap', 'history-log'],
    [' || after !== (previous?.id ?? null)', '', 'entries are of one history', 'history-log'],
    [' || header.wirewatch_log !== kind', '', 'a log is of the database', 'history-log'],
    [
      '    if (header.format > LOG_FORMAT)',
      '    if (header.format > LOG_FORMAT + 1)',
      'a newer format is refused',
      'history-log',
    ],
    [
      'this.#size = Math.max(this.#size, fstatSync(this.#file).size);',
      '',
      'a log that is written meanwhile is read on',
      'purge',
    ],
  ]),
  ...faultsIn('history/log-writer.ts', [
    [
      '      if (this.#file !== null) ftruncateSync(this.#file, this.#end);\n',
      '',
      'what was rolled back is cut from the log',
      'history-log',
    ],
    [
      '      ftruncateSync(this.#file, begin.bytes);\n',
      '',
      'an entry that was taken back is cut',
      'access-log',
    ],
    ['    this.#last = begin.last;\n', '', 'an entry that was taken back has no successor', 'access-log'],
    ['    this.#end = this.#offset;\n', '', 'the next entry goes behind the last', 'history-log'],
    ['segment.program !== options.program', 'false', 'another version begins a segment', 'history-log'],
    [
      '      throw this.#failure;\n    }\n    this.#last = commit;',
      '    }\n    this.#last = commit;',
      'a failed sync ends ingest',
      'file-errors',
    ],
  ]),
  ...faultsIn('history/log-reader.ts', [
    [
      'for (const { path } of stumps) rmSync(path);',
      '',
      'a segment without a header is removed',
      'history-log',
    ],
    ['(isDoubtful && !mayBeDoubtful)', 'false', 'damage is not taken for a torn end', 'history-log'],
    [
      'behind.some((entry) => entry !== next)',
      'false',
      'damage before whole entries is not cut',
      'history-log',
    ],
    [
      "=== mark.id ? 'known' : 'foreign'",
      "=== mark.id ? 'known' : 'known'",
      'another history is told',
      'history-log',
    ],
    [
      '      if (!reader.isWhole && hasNext(index))\n',
      '      if (false)\n',
      'damage in a closed segment is found',
      'history-log',
    ],
    [
      "part.kind === 'commit' && index === 0 && previous === undefined) requireBeginning",
      'false) requireBeginning',
      'a log has its beginning',
      'history-log',
    ],
  ]),
  ...faultsIn('history/recover.ts', [
    [
      '    requireReach(folder, tail, found);\n',
      '',
      'a log that ends before the database is refused',
      'rebuild',
    ],
    [
      '    if (tail.isDoubtful) requireTorn(folder, tail, isOurs ? db : null);\n',
      '',
      'a doubtful end is no torn end',
      'recovery-faults',
    ],
    ['  if (!isOurs) setWalAside(path);\n', '', "another file's -wal is not joined", 'recovery'],
    [
      '    const reason = isOurs ? null : whyUnsound(db);\n',
      '    const reason = null;\n',
      'a file that was put back proves itself',
      'rebuild',
    ],
    [
      '        if (!isContradiction(error)) throw error;\n',
      '        throw error;\n',
      'a database that contradicts its mark is made anew',
      'recovery-faults',
    ],
    [
      '    if (madeAnew !== null) rmSync(folder.damage, { force: true });\n',
      '    rmSync(folder.damage, { force: true });\n',
      'damage that is found meanwhile stays noted',
      'recovery-faults',
    ],
    [') rollBackJournal(draft);\n', ') {}\n', 'a draft that was cut off is rolled back', 'recovery-faults'],
    [
      '    const unsound = isResumed ? whyUnsound(db) : null;\n',
      '    const unsound = null;\n',
      'a draft of before a power cut is checked',
      'recovery-faults',
    ],
    [
      '  if (existsSync(folder.damage))\n',
      '  if (false)\n',
      'a database noted as damaged is made anew',
      'rebuild',
    ],
    [
      '  noteIdentity(options.folder.detections, true);\n',
      '',
      'a start that is cut short knows its file',
      'recovery-faults',
    ],
  ]),
  ...faultsIn('store/file-identity.ts', [
    [
      '  if (now.inode !== noted.inode) return false;\n',
      '',
      'another file in its place is found',
      'recovery-faults',
    ],
    [
      ' || entry >= (noted.entry ?? 0)',
      ' || entry >= 0',
      'an older file with the same inode is found',
      'recovery-faults',
    ],
    [
      '  noteIdentity(db.name, true, before);\n',
      '',
      'a checkpoint that is cut off leaves a known file',
      'recovery-faults',
    ],
    [
      ' && now.modified_ns === noted.modified_ns',
      '',
      'a file with other content is found',
      'recovery-faults',
    ],
  ]),
  ...faultsIn('history/projection.ts', [
    ['    setLogMark(this.#db, mark);\n', '', 'a database made anew knows where it is', 'recovery-faults'],
    [
      "    if (this.#db.inTransaction) this.#db.exec('ROLLBACK');\n",
      '',
      'half an entry is rolled back',
      'recovery-faults',
    ],
    [
      'if (this.#waiting.length > 0) throw',
      'if (false) throw',
      'rows without an outcome are damage',
      'log-format',
    ],
    [
      "        if (line.line.put === 'version_epoch') this.#epochs = null;\n",
      '',
      'a version epoch counts from its row on',
      'recovery',
    ],
    ['line.position + index', 'line.position', 'each row has its position', 'recovery-faults'],
  ]),
  ...faultsIn('history/access-log.ts', [
    ['      cutTorn(tail);\n', '', 'what a killed command left is cut', 'access-log'],
    [
      '    if (log !== null && db.inTransaction && !isWriteLost(error)) log.undo();\n',
      '',
      'an entry that the database refused is taken back',
      'access-log',
    ],
    [
      "  if (effects.take() !== '')\n",
      '  if (false)\n',
      'what is written past the log is refused',
      'access-log',
    ],
    [
      '  if (mark.entry > tail.last.entry)\n',
      '  if (false)\n',
      'a log that ends before access.db is refused',
      'access-log',
    ],
    [
      '    if (inodeOf(db.name) !== logged.inode)\n',
      '    if (false)\n',
      'nothing is written to a file that was replaced',
      'access-log',
    ],
    ['  trustTail(accessLog, tail);\n', '', 'an entry is applied once it is on the disk', 'durability'],
    [
      '    if (part.commit.id === through?.id) return applied;\n',
      '',
      'access.db is compared up to its mark',
      'access-log',
    ],
  ]),
  ...faultsIn('history/access.ts', [
    [
      '    const [table] = compare ? differingTables(db, accessLog) : [];\n',
      '    const [table]: string[] = [];\n',
      'at a start access.db is compared with its log',
      'access-log',
    ],
    ['    again.held?.close();\n', '', 'a lock is given up', 'access-recovery'],
  ]),
  ...faultsIn('history/purge.ts', [
    ['.toReversed()', '', 'the newest segment is rewritten first', 'purge'],
    [
      '    if (!written.isWhole || written.last?.id',
      '    if (written.last?.id',
      'what was rewritten is whole',
      'purge',
    ],
    ['    if (kept !== null) this.#isChanged = true;\n', '', 'a rewritten entry states its frames', 'purge'],
    ['    if (!reader.isWhole) throw', '    if (false) throw', 'a damaged segment is not rewritten', 'purge'],
    ['  if (freeBytes(path) >= bytes) return;\n', '  return;\n', 'ingest keeps its room', 'purge'],
  ]),
  ...faultsIn('ingest/removal.ts', [
    ["  db.pragma('secure_delete = ON');\n", '', 'what is removed is gone from the file', 'removal'],
    ['  writer.closeSegment();\n', '', 'the open segment is rewritten, too', 'purge'],
    ['  notePurged(folder.log, ended);\n', '', 'a log is looked through once', 'purge'],
  ]),
  ...faultsIn('backup/log-copy.ts', [
    [
      '    if (!isStill()) throw',
      '    if (false) throw',
      'a segment that is rewritten meanwhile is copied again',
      'purge',
    ],
    [
      '    if (next !== undefined) requireJoin(next, kind, end);\n',
      '',
      'segments of a backup join',
      'backup',
    ],
    ['    if (!reader.isWhole) throw', '    if (false) throw', 'what was copied is whole', 'backup'],
    ['    ftruncateSync(target, begin);\n', '', 'what is not good is cut from the backup', 'backup'],
    ['    if (own > 0) keepAside(copy.path, options.aside);\n', '', 'a replaced segment is kept', 'backup'],
    ['      if (last === null) requireBeginning(part.commit);\n', '', 'a backup has its beginning', 'backup'],
    [
      '...indexes.slice(0, first).reverse()',
      '...indexes.slice(0, first)',
      'a rewritten log is copied newest first',
      'purge',
    ],
    [
      'if (reader.last.id === id) return reader.end;',
      'return reader.end;',
      'a backup ends with its own entry',
      'backup',
    ],
  ]),
  ...faultsIn('backup/source.ts', [
    [
      ' || (state !== null && sha256(secret) !== state.secret_sha256)',
      '',
      'a damaged secret is not restored',
      'restore',
    ],
    [
      "if (end !== null && placeOf(log, of, end) !== 'known')",
      'if (false)',
      'a backup reaches its end',
      'restore',
    ],
  ]),
  ...faultsIn('backup/branch.ts', [
    ['name !== own && ', '', 'the branch in use is kept', 'backup'],
    [
      "placeOf(data.log, 'detections', ends.log) === 'known'",
      'true',
      'a folder of another history is not changed',
      'backup',
    ],
    ['keepDays * DAY_MS', '(keepDays - 1) * DAY_MS', 'old branches live as long as it was said', 'backup'],
  ]),
  ...faultsIn('backup/write-backup.ts', [
    ['mark.entry >= least && ', '', 'a backup does not go back', 'backup'],
    [
      '  const release = keepInPlace(folder, false);\n',
      '  const release = () => {};\n',
      'no restore comes between',
      'restore',
    ],
  ]),
  ...faultsIn('backup/new-state.ts', [
    [
      "const lost = untilMs !== null ? 'until' : isContinued ? null : 'backup';",
      "const lost = untilMs !== null ? 'until' : null;",
      'a lost end raises versions',
      'restore',
    ],
    [
      'position: Math.max(cut.position, known)',
      'position: 0',
      'positions of a lost part are not given again',
      'restore',
    ],
  ]),
  ...faultsIn('backup/restore.ts', [
    ['    requireReplace(folder, options.replace);\n', '', 'nothing is replaced unasked', 'restore'],
  ]),
  ...faultsIn('store/incoming.ts', [
    ['-new` ||\n', '-newer` ||\n', 'a new log of the old state is moved aside', 'restore'],
    [
      '    if (!existsSync(join(from, name))) continue;\n',
      '',
      'a restore that was cut off goes on',
      'restore',
    ],
  ]),
  ...faultsIn('store/locks.ts', [["BEGIN EXCLUSIVE'", "BEGIN'", 'a lock is held by one', 'restore']]),
  ...faultsIn('history/lost-end.ts', [
    [
      'const EPOCH_POSITIONS = 3.2e13;',
      'const EPOCH_POSITIONS = 3.2e12;',
      'positions go on a year ahead',
      'restore',
    ],
    [
      '  if (known >= position) return null;\n',
      '',
      'a cursor that was given out is no proof',
      'period-cursor',
    ],
    ['nowMs > CLOCK_MAX_MS ? 0 : ', '', 'a clock of after 2200 is not believed', 'ingest-order'],
  ]),
  ...faultsIn('history/scrub.ts', [
    [
      "findings.add('log damaged', reasonOf(error));\n    } else if",
      '{}\n    } else if',
      'damage of the log is told',
      'scrub',
    ],
  ]),
];
