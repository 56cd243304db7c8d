/** Faults in the log, its recovery, removal and backup: missing comparisons, truncations and marks. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const LOG_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('history/frame.ts', [
    [' || length === 0 ||', ' ||', 'zeros behind a torn write are no frame', 'log-entries'],
  ]),
  ...faultsIn('history/segment.ts', [
    [' || !isFrameIntact(header, packed)', '', 'the checksum of a frame is compared', 'log-entries'],
    [' || checksum !== found.checksum', '', 'an entry has its own frames', 'log-entries'],
    [' || after !== (previous?.id ?? null)', '', 'entries are of one history', 'log-entries'],
    [' || header.wirewatch_log !== kind', '', 'a log is of the database', 'log-entries'],
    [
      '    if (header.format > LOG_FORMAT)',
      '    if (header.format > LOG_FORMAT + 1)',
      'a newer format is refused',
      'log-entries',
    ],
  ]),
  ...faultsIn('history/log-writer.ts', [
    [
      '      if (this.#file !== null) ftruncateSync(this.#file, this.#end);\n',
      '',
      'what was rolled back is cut from the log',
      'log-entries',
    ],
    [
      '      ftruncateSync(this.#file, begin.bytes);\n',
      '',
      'an entry that was taken back is cut',
      'access-log',
    ],
    ['    this.#end = this.#offset;\n', '', 'the next entry goes behind the last', 'log-entries'],
    ['segment.program !== options.program', 'false', 'another version begins a segment', 'log-entries'],
  ]),
  ...faultsIn('history/log-reader.ts', [
    [
      'for (const { path } of stumps) rmSync(path);',
      '',
      'a segment without a header is removed',
      'log-entries',
    ],
    ['(isDoubtful && !mayBeDoubtful)', 'false', 'damage is not taken for a torn end', 'recovery-faults'],
    [
      'behind.some((entry) => entry !== next)',
      'false',
      'damage before whole entries is not cut',
      'log-entries',
    ],
    [
      "=== mark.id ? 'known' : 'foreign'",
      "=== mark.id ? 'known' : 'known'",
      'another history is told',
      'log-entries',
    ],
    [
      '      if (!reader.isWhole && hasNext(index))\n',
      '      if (false)\n',
      'damage in a closed segment is found',
      'log-entries',
    ],
    [
      "part.kind === 'commit' && index === 0 && previous === undefined) requireBeginning",
      'false) requireBeginning',
      'a log has its beginning',
      'log-entries',
    ],
  ]),
  ...faultsIn('history/recover.ts', [
    [
      '    if (tail.isDoubtful && !(isOurs && db !== null)) throw undecided(folder, tail);\n',
      '',
      'a doubtful end is no torn end',
      'recovery-faults',
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
    ['      rollBackJournal(draft);\n', '', 'a draft that was cut off is rolled back', 'recovery-faults'],
    [
      "    return unusable('the file was replaced, or a power cut took the note of which file it is');\n",
      '    isOurs;\n',
      'a half-written file is rebuilt',
      'recovery-faults',
    ],
    [
      'if (tail.isDoubtful && !(isOurs && db !== null))',
      'if (tail.isDoubtful)',
      'a torn end is cut if the database lacks it',
      'recovery-faults',
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
  ...faultsIn('history/apply-log.ts', [
    ['    setLogMark(this.#db, mark);\n', '', 'a database made anew knows where it is', 'recovery-faults'],
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
      'access-log-rebuild',
    ],
    ['  trustTail(accessLog, tail);\n', '', 'an entry is applied once it is on the disk', 'durability'],
    [
      '    if (part.commit.id === through?.id) return applied;\n',
      '',
      'access.db is compared up to its mark',
      'access-log-rebuild',
    ],
  ]),
  ...faultsIn('history/open-access.ts', [
    [
      '    const [table] = compare ? differingTables(db, accessLog) : [];\n',
      '    const [table]: string[] = [];\n',
      'at a start access.db is compared with its log',
      'access-log-rebuild',
    ],
  ]),
  ...faultsIn('history/purge.ts', [
    ['.toReversed()', '', 'the newest segment is rewritten first', 'purge'],
    ['    if (kept !== null) this.#isChanged = true;\n', '', 'a rewritten entry states its frames', 'purge'],
    [
      '    if (!reader.isWhole) throw',
      '    if (false) throw',
      'a damaged segment is not rewritten',
      'purge-segments',
    ],
    ['  if (freeBytes(path) >= bytes) return;\n', '  return;\n', 'ingest keeps its room', 'purge-segments'],
  ]),
  ...faultsIn('ingest/apply/remove-rows.ts', [
    ['  writer.closeSegment();\n', '', 'the open segment is rewritten, too', 'purge'],
    ['  notePurged(folder, ended);\n', '', 'a log is looked through once', 'purge-segments'],
  ]),
  ...faultsIn('backup/log-copy.ts', [
    [
      '    if (!isStill()) throw',
      '    if (false) throw',
      'a segment that is rewritten meanwhile is copied again',
      'purge-backup',
    ],
    [
      '...indexes.slice(0, first).reverse()',
      '...indexes.slice(0, first)',
      'a rewritten log is copied newest first',
      'purge-backup',
    ],
  ]),
  ...faultsIn('history/scrub.ts', [
    ["findings.add('log damaged', problem.message);\n", '', 'damage of the log is told', 'scrub-damage'],
  ]),
];
