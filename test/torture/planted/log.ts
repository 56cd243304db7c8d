/** Faults in the log, its recovery, removal and backup: missing comparisons, truncations and marks. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const LOG_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('history/frame.ts', [
    [' || length === 0 ||', ' ||', 'zeros after a torn write are not a frame', 'log-entries'],
  ]),
  ...faultsIn('history/segment.ts', [
    [
      '\n    this.#size = fstatSync(this.#file).size;\n',
      '\n    this.#size = Math.max(this.#size, fstatSync(this.#file).size);\n',
      'a reader forgets the size of an entry that was rolled back',
      'log-entries',
    ],
    [' || !isFrameIntact(header, packed)', '', 'the checksum of a frame is verified', 'log-entries'],
    [' || checksum !== found.checksum', '', 'the checksum of an entry is verified', 'log-entries'],
    [' || after !== (previous?.id ?? null)', '', 'an entry must follow the previous one', 'log-entries'],
    [
      '    if (header.format > LOG_FORMAT)',
      '    if (header.format > LOG_FORMAT + 1)',
      'a newer format is refused',
      'log-entries',
    ],
  ]),
  ...faultsIn('history/format.ts', [
    ["  wirewatch_log: Type.Literal('detections'),\n", '', 'the kind of a log is checked', 'log-entries'],
  ]),
  ...faultsIn('history/log-writer.ts', [
    [
      '      if (this.#file !== null) ftruncateSync(this.#file, this.#end);\n',
      '',
      'rolled-back data is truncated from the log',
      'log-entries',
    ],
    ['    this.#end = this.#offset;\n', '', 'the next entry is written after the last', 'log-entries'],
    [
      'segment.program !== options.program',
      'false',
      'another version of the program starts a new segment',
      'log-entries',
    ],
  ]),
  ...faultsIn('history/log-reader.ts', [
    [
      'for (const { path } of stumps) rmSync(path);',
      '',
      'a segment without a header is removed',
      'log-entries',
    ],
    ['(isDoubtful && !mayBeDoubtful)', 'false', 'damage is distinguished from a torn end', 'recovery-faults'],
    [
      'behind.some((entry) => entry !== next)',
      'false',
      'damage before complete entries is not truncated',
      'log-entries',
    ],
    [
      "=== mark.id ? 'known' : 'foreign'",
      "=== mark.id ? 'known' : 'known'",
      'a log of another history is detected',
      'log-entries',
    ],
    [
      '    if (!reader.isWhole && hasNext(index))\n',
      '    if (false)\n',
      'damage in a closed segment is found',
      'log-entries',
    ],
    [
      "part.kind === 'commit' && index === 0 && previous === undefined) requireBeginning",
      'false) requireBeginning',
      'the first segment of a log must exist',
      'log-entries',
    ],
  ]),
  ...faultsIn('history/recover.ts', [
    [
      '  if (isDoubtful)\n    throw new',
      '  if (last === null)\n    throw new',
      'a doubtful end does not count as a torn end',
      'recovery-faults',
    ],
    [
      '        if (!isContradiction(error)) throw error;\n',
      '        throw error;\n',
      'a database that contradicts its mark is rebuilt',
      'recovery-faults',
    ],
    [
      '    if (madeAnew !== null) rmSync(folder.damage, { force: true });\n',
      '    rmSync(folder.damage, { force: true });\n',
      'damage found meanwhile stays noted',
      'recovery-faults',
    ],
    [
      '  removeDatabase(draft);\n  const db =',
      '  const db =',
      'a draft of an interrupted rebuild is not continued',
      'recovery-drafts',
    ],
    [
      "    return unusable('the file was replaced, or",
      "    String('the file was replaced, or",
      'a file of two states is rebuilt',
      'checkpoint',
    ],
    [
      '    requireReach(folder, tail);\n',
      '',
      'an entry that only the write-ahead log has is not cut off',
      'recovery-faults',
    ],
    [
      '  remove();\n  syncFolder(root);\n  removeBeside(detections);\n',
      '  removeBeside(detections);\n  remove();\n  syncFolder(root);\n',
      'the marker outlives the file that it speaks of',
      'checkpoint',
    ],
  ]),
  ...faultsIn('store/checkpoint.ts', [
    [
      'salts === saltsOf(path) && tokens.',
      'tokens.',
      'the write-ahead log of another checkpoint is not joined',
      'checkpoint',
    ],
    [' && tokens.includes(ownToken(path))', '', 'another file in its place is detected', 'checkpoint'],
    [
      '  if (sizeOf(walPath(path)) > 0) for (',
      '  if (sizeOf(walPath(path)) < 0) for (',
      'a write-ahead log that is not needed is dropped',
      'checkpoint',
    ],
    ['  mark(db);\n', '', 'an interrupted checkpoint is completed', 'checkpoint'],
    [
      '    tokenOf(other);\n    db.close();\n',
      '',
      'closing runs no checkpoint without a marker',
      'checkpoint',
    ],
    [
      "  if (!copyPages(db, 'FULL')) return;\n",
      "  copyPages(db, 'FULL');\n",
      'an incomplete checkpoint keeps its marker',
      'checkpoint',
    ],
    [
      "unsafeMode(true).pragma('writable_schema = ON')",
      "unsafeMode(true).pragma('writable_schema = OFF')",
      'a file that is shorter than it says is recognized',
      'checkpoint',
    ],
    ["  db.pragma('synchronous = FULL');\n", '', 'the marker names a -wal that is on the disk', 'checkpoint'],
  ]),
  ...faultsIn('history/apply-log.ts', [
    ['    setLogMark(this.#db, this.#mark);\n', '', 'a rebuilt database stores its mark', 'recovery-faults'],
    ['line.position + index', 'line.position', 'each row has its position', 'recovery-faults'],
    ['this.#isWithinEntry = true', '', 'an incomplete entry is not applied with others', 'pending-entry'],
  ]),
  ...faultsIn('history/compact.ts', [
    [
      '    const damage = damageOf(folder, found);\n',
      '    const damage = null;\n',
      'a log is rewritten only from a database that equals it',
      'compact',
    ],
    [
      '    if (damage !== null) requireSound(db, folder);\n',
      '',
      'beside a damaged log the database is checked by itself',
      'compact',
    ],
    [
      '  requireAll(folder, newestEntry(segments) - mark.entry);\n',
      '',
      'entries that the database lacks are not given up',
      'compact',
    ],
    ["  db.exec('BEGIN');\n", '', 'a snapshot is of one moment', 'compact-online'],
  ]),
  ...faultsIn('history/segment.ts', [
    [
      ' || one.firstEntry > begin.firstEntry',
      ' || one.firstEntry >= 0',
      'a snapshot makes earlier segments obsolete',
      'compact',
    ],
  ]),
  ...faultsIn('ingest/apply/remove-rows.ts', [
    [
      '  writer.closeSegment();\n',
      '',
      'entries since a snapshot have segments of their own',
      'compact-online',
    ],
  ]),
  ...faultsIn('store/database.ts', [
    ["      'secure_delete = ON',\n", '', 'removed rows are nowhere in the database file', 'compact-online'],
  ]),
  ...faultsIn('ingest/requests/replay.ts', [
    [
      '...REREAD, streams, rows_to_skip',
      '...REREAD, rows_to_skip',
      'a replay brings no removed rows back',
      'removal',
    ],
  ]),
  ...faultsIn('backup/write-backup.ts', [
    [
      'writeWhole(copy.access, content)',
      'writeWhole(copy.access, readAccess(folder).content)',
      'access.db of a backup is not newer than its log',
      'backup',
    ],
    [
      '  if (!hasEntry(folder.log, end)) throw alone(copy, later);\n',
      '',
      'a backup of another history is left alone',
      'backup',
    ],
    [
      "  if (placeOf(folder.log, end) === 'before' && (epoch === null || before?.epoch !== epoch))",
      '  if (false)',
      'a rewritten log replaces no backup of a discarded state',
      'backup',
    ],
    [
      'found.state.change > access.change',
      'found.state.change < 0',
      'a later access.db of a backup is left alone',
      'backup',
    ],
  ]),
  ...faultsIn('backup/log-copy.ts', [
    ['  tidyLog(to);\n', '', 'removed rows are gone from a backup', 'backup'],
  ]),
  ...faultsIn('backup/restore.ts', [
    [
      'replaced.parted !== null ? replaced.parted : monthBeforeEnd(db)',
      'true ? (replaced.parted ?? Number.POSITIVE_INFINITY) : monthBeforeEnd(db)',
      'where it is not known what clients missed, the last 31 days are announced again',
      'restore',
    ],
    ['        undone,\n', '', 'what a restore undoes is announced again', 'restore'],
  ]),
  ...faultsIn('backup/discarded.ts', [
    ['    if (id !== undefined) this.undone.add(id);\n', '', 'what exists no more is listed', 'restore'],
    [
      'given.last?.id === readLogMarkOf(live.detections)?.id',
      'true',
      'a log that ends before its database has a lost end',
      'restore-damaged',
    ],
    ['    given.isWhole = false;\n', '', 'a log that cannot be read has a lost end', 'restore-damaged'],
  ]),
  ...faultsIn('history/version-epoch.ts', [
    [
      'if (position <= POSITION_MAX && (ofClock > 0 || nowMs > CLOCK_MAX_MS)) return',
      'if (position > 0) return',
      'positions stay exact numbers',
      'version-epoch',
    ],
  ]),
  ...faultsIn('history/scrub.ts', [
    ["findings.add('log damaged', problem.message);\n", '', 'damage of the log is reported', 'scrub-damage'],
    [
      '  if (damage !== null && !isRepeated) return false;\n',
      '',
      'damage between segments is reported only if it is found twice',
      'scrub-damage',
    ],
    ["findings.add('log damaged', damage.message);\n", ';\n', 'a missing end is reported', 'scrub-damage'],
  ]),
  ...faultsIn('history/compare-tables.ts', [
    [
      '      guard(findings, spec.table, () => checkTexts(db, spec.table, findings));\n',
      '      ;\n',
      'texts are compared with their checksums',
      'scrub-damage',
    ],
    [
      "  guard(findings, 'detections.db', () => checkIntegrity(db, findings));\n",
      '',
      'indexes are compared',
      'scrub-damage',
    ],
  ]),
];
