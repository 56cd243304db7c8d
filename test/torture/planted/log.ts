/** Faults in the log, its recovery, removal and restore: missing comparisons, truncations and marks. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const LOG_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('log/effects.ts', 'log-format', {
    "[-db.exec(note('UPDATE', put));-]": 'the log has what a statement changes',
  }),
  ...faultsIn('log/frame.ts', 'log-entries', {
    '||[- length === 0 ||-]': 'zeros after a torn write are not a frame',
    '[-|| crc32(packed) !== header.checksum-]': 'the checksum of a frame is verified',
    '[-|| commit.checksum !== this.#checksum-]': 'the checksum of an entry is verified',
    '[-|| commit.after !== (this.last ?? { id: commit.after }).id-]': 'an entry must follow the previous one',
    '[-if (this.last === null) requireBeginning(commit);\n    else -]if (commit.entry':
      'the first segment of a log must exist',
  }),
  ...faultsIn('log/segment.ts', 'log-entries', {
    'if (header.format > LOG_FORMAT{+ + 1+})': 'a newer format is refused',
  }),
  ...faultsIn('log/segment.ts', 'compact', {
    '|| file.firstEntry >[- begin.firstEntry-]{+= 0+}': 'a snapshot makes earlier segments obsolete',
  }),
  ...faultsIn('log/log-writer.ts', 'log-entries', {
    '[-if (this.#file !== null) ftruncateSync(this.#file, this.#end);-]':
      'rolled-back data is truncated from the log',
    '[-segment.program !== options.program-]{+false+}': 'another version of the program starts a new segment',
  }),
  ...faultsIn('log/log-reader.ts', 'log-entries', {
    '[-behind.some((entry) => entry !== next)-]{+false+}': 'damage before complete entries is not truncated',
    "=== mark.id ? 'known' : '[-foreign-]{+known+}'": 'a log of another history is detected',
    'if ([-!reader.isWhole && hasNext(index)-]{+false+})': 'damage in a closed segment is found',
  }),
  ...faultsIn('log/log-reader.ts', 'recovery-faults', {
    '[-(isDoubtful && !mayBeDoubtful)-]{+false+}': 'damage is distinguished from a torn end',
  }),
  ...faultsIn('log/recover.ts', 'recovery-faults', {
    'if ([-isDoubtful-]{+last === null+})\n    throw new': 'a doubtful end does not count as a torn end',
    '[-if (!isContradiction(error)) -]throw error;': 'a database that contradicts its mark is rebuilt',
    '[-if (madeAnew !== null) -]rmSync(folder.damage, { force: true });':
      'damage found meanwhile stays noted',
    '[-requireReach(folder, tail);-]': 'an entry that only the write-ahead log has is not cut off',
  }),
  ...faultsIn('log/recover.ts', 'recovery-faults', {
    '[-removeDatabase(draft);\n  -]const db =': 'a draft of an interrupted rebuild is not continued',
  }),
  ...faultsIn('log/recover.ts', 'checkpoint', {
    "[-return-]{+void+} 'the file was replaced, or": 'a file of two states is rebuilt',
    '[-remove();\n  syncFolder(root);\n  removeBeside(detections-]{+removeBeside(detections);\n  remove();\n  syncFolder(root+});':
      'the marker outlives the file that it speaks of',
  }),
  ...faultsIn('store/checkpoint.ts', 'checkpoint', {
    '[-salts === saltsOf(path) && -]tokens.': 'the write-ahead log of another checkpoint is not joined',
    '[-&& tokens.includes(ownToken(path))-]': 'another file in its place is detected',
    '[-mark(db);-]': 'an interrupted checkpoint is completed',
    "[-db.pragma('synchronous = FULL');-]": 'the marker names a -wal that is on the disk',
  }),
  ...faultsIn('log/apply-log.ts', 'recovery-faults', {
    '[-setLogMark(this.#db, this.#mark);-]': 'a rebuilt database stores its mark',
    'line.position[- + index-]': 'each row has its position',
  }),
  ...faultsIn('log/apply-log.ts', 'pending-entry', {
    '[-this.#isWithinEntry = true-]': 'an incomplete entry is not applied with others',
  }),
  ...faultsIn('log/compact.ts', 'compact', {
    'const damage = [-damageOf(folder, found)-]{+null+};':
      'a log is rewritten only from a database that equals it',
    '[-if (compared.findings.length > 0) throw unsound(folder, describeFindings(compared.findings));-]':
      'beside a damaged log the database is checked by itself',
    '[-requireAll(folder, newestEntry(segments) - mark.entry);-]':
      'entries that the database lacks are not given up',
  }),
  ...faultsIn('log/compact.ts', 'compact-online', {
    "[-db.exec('BEGIN');-]": 'a snapshot is of one moment',
  }),
  ...faultsIn('ingest/apply/remove-rows.ts', 'compact-online', {
    '[-writer.closeSegment();-]': 'entries since a snapshot have segments of their own',
  }),
  ...faultsIn('store/database.ts', 'compact-online', {
    "[-'secure_delete = ON',-]": 'removed rows are nowhere in the database file',
  }),
  ...faultsIn('ingest/requests/replay.ts', 'removal', {
    'mapping, [-streams, -]rows_to_skip': 'a replay brings no removed rows back',
  }),
  ...faultsIn('copy/restore.ts', 'restore', {
    '[-replaced.parted !== null ? replaced.parted-]{+true ? (replaced.parted ?? Number.POSITIVE_INFINITY)+} : monthBeforeEnd(db)':
      'where it is not known what clients missed, the last 31 days are announced again',
    '[-undone,-]': 'what a restore undoes is announced again',
  }),
  ...faultsIn('copy/discarded.ts', 'restore', {
    '[-if (id !== undefined) this.undone.add(id);-]': 'what exists no more is listed',
  }),
  ...faultsIn('copy/discarded.ts', 'restore-damaged', {
    '[-given.last?.id === readLogMarkOf(live.detections)?.id-]{+true+}':
      'a log that ends before its database has a lost end',
  }),
  ...faultsIn('log/version-epoch.ts', 'version-epoch', {
    'if (position [-<= POSITION_MAX && (ofClock > 0 || nowMs > CLOCK_MAX_MS)-]{+> 0+}) return':
      'positions stay exact numbers',
  }),
  ...faultsIn('log/scrub.ts', 'scrub-damage', {
    "[-findings.add('log damaged', error.message);-]": 'damage of the log is reported',
    'if (found !== before) [-before = found-]{+return result+};':
      'damage is reported only if it is found twice',
    '[-if (a?.hash === b?.hash && a?.rows === b?.rows) continue-]{+continue+};': 'rows are compared',
    "[-if (line !== 'ok') findings.add('database malformed', line)-]{+void line+};": 'indexes are compared',
    '[-onBadText(`${table} place ${at}: its text does not match its checksum`)-]{+void at+};':
      'texts are compared with their checksums',
  }),
];
