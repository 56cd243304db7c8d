/** Faults in the log, its recovery, removal and restore: missing comparisons, truncations and marks. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const LOG_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('log/effects.ts', 'log-format', {
    "[-db.exec(note('UPDATE', put));-]": 'the log has what a statement changes',
  }),
  ...faultsIn('log/frame.ts', 'log-entries', {
    '[-|| commit.checksum !== this.#checksum-]': 'the checksum of an entry is verified',
  }),
  ...faultsIn('log/segment.ts', 'compact', {
    '|| file.firstEntry >[- begin.firstEntry-]{+= 0+}': 'a snapshot makes earlier segments obsolete',
  }),
  ...faultsIn('log/log-reader.ts', 'log-entries', {
    "=== mark.id ? 'known' : '[-foreign-]{+known+}'": 'a log of another history is detected',
  }),
  ...faultsIn('log/log-reader.ts', 'recovery-faults', {
    '[-(isDoubtful && !mayBeDoubtful)-]{+false+}': 'damage is distinguished from a torn end',
  }),
  ...faultsIn('log/recover.ts', 'recovery-faults', {
    'if ([-isDoubtful-]{+last === null+})\n    throw new': 'a doubtful end does not count as a torn end',
    '[-requireReach(folder, tail);-]': 'an entry that only the write-ahead log has is not cut off',
  }),
  ...faultsIn('log/recover.ts', 'recovery-faults', {
    '[-await requireWhole(tail, options);-]\n        madeAnew =':
      'a database is given up only after the log was read to its end',
    '[-!isAgain && -]!settleWal(path)': 'a write-ahead log is not taken from open readers',
  }),
  ...faultsIn('log/recover.ts', 'recovery-faults', {
    '[-removeDatabase(draft);\n  -]const db =': 'a draft of an interrupted rebuild is not continued',
  }),
  ...faultsIn('store/checkpoint.ts', 'checkpoint', {
    '[-salts === saltsOf(path) && -]tokens.': 'the write-ahead log of another checkpoint is not joined',
    '[-&& tokens.includes(ownToken(path))-]': 'another file in its place is detected',
  }),
  ...faultsIn('log/apply-log.ts', 'recovery-faults', {
    '[-setLogMark(this.#db, this.#mark);-]': 'a rebuilt database stores its mark',
  }),
  ...faultsIn('log/apply-log.ts', 'recovery', {
    'line.position[- + index-]': 'each row has its position',
  }),
  ...faultsIn('log/compact.ts', 'compact', {
    'const damage = [-damageOf(folder, found)-]{+null+};':
      'a log is rewritten only from a database that equals it',
  }),
  ...faultsIn('ingest/requests/replay.ts', 'removal', {
    'mapping, [-streams, -]rows_to_skip': 'a replay brings no removed rows back',
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
    '[-if (a?.hash === b?.hash && a?.rows === b?.rows) continue-]{+continue+};': 'rows are compared',
    '[-onBadText(`${table} place ${at}: its text does not match its checksum`)-]{+void at+};':
      'texts are compared with their checksums',
  }),
];
