/** Faults in the handling of dropped files and their rows: positions, versions, windows, times. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const INGEST_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('ingest/files/changed-files.ts', 'finished-files', {
    '[-readAgain(files, record, destination);-]': 'rows that are written into a file after it was read come',
  }),
  ...faultsIn('ingest/threads/retries.ts', 'disk-full', {
    "[-setCondition('disk full', err.message);-]": 'a full disk is an alert while ingest waits',
  }),
  ...faultsIn('detection/merge.ts', 'merge', {
    'order < 0 ? [-a : b-]{+b : a+}': 'the earliest first detection wins',
    "[-compareText(a.exported_at_given ?? '', b.exported_at_given ?? '') ||-]":
      'of equal scorings, the later export wins',
    'version: known.version[- + 1-]': 'a visible change increases the version',
    '[-isPrint === true && !licensed ? null : -]url': 'URLs of print articles need a licence',
  }),
  ...faultsIn('detection/band.ts', 'vocabulary', {
    'score >[-=-] threshold': 'a band begins at its threshold',
    '[25, 50, 75, [-95-]{+96+}]': 'max begins at 95',
  }),
  ...faultsIn('ingest/files/retention.ts', 'archive', {
    '[-deleteExpired(files, nowMs - archiveDays * DAY_MS);\n    lastMs = nowMs-]{+lastMs = nowMs;\n    deleteExpired(files, nowMs - archiveDays * DAY_MS)+};':
      'old files are deleted as soon as there is space',
  }),
  ...faultsIn('ingest/apply/window-file.ts', 'failed-windows', {
    'if ([-number !== record.number-]{+false+} && !isThereIn(':
      'a file that a reset reads again has one record',
  }),
  ...faultsIn('drop/drop-folder.ts', 'ready-files', {
    '[-if (!stats.isFile() || !isSameSnapshot(stats, waiting.snapshot)) return false;-]':
      'a changed file is checked again',
  }),
  ...faultsIn('ingest/threads/ingest-loop.ts', 'refused-files', {
    'processed += 1;[-\n      await this.#turn();-]': 'a stop does not wait for many files',
  }),
  ...faultsIn('ingest/reading/read-export.ts', 'reading-settings', {
    '[-this.isOver = this.#errorsTotal >= this.#order.errors_max;-]': 'a file that fails is read no further',
  }),
  ...faultsIn('drop/own-folder.ts', 'hostile-exporter', {
    'if ([-(mode & WRITABLE_BY_OTHERS) !== 0-]{+false+})': 'nobody else writes to an own folder',
    'constants.O_DIRECTORY[- | constants.O_NOFOLLOW-]': 'an own folder is no link',
    'at: [-HAS_OPEN_FILES-]{+false+} ?': 'a folder cannot be exchanged while it is used',
  }),
  ...faultsIn('ingest/requests/replay.ts', 'other-shapes', {
    'earliest, [-mapping, -]streams': 'an archived file is replayed with the mapping of its first reading',
  }),
  ...faultsIn('ingest/files/file-record.ts', 'other-shapes', {
    "[- AND report -> '$.mapping' IS :mapping-]": 'the same file is read again under a changed mapping',
  }),
  ...faultsIn('zone-days.ts', 'mapping', {
    'last.epochMilliseconds + Math.[-max-]{+min+}(': 'a local time that exists twice is an error of its row',
  }),
  ...faultsIn('drop/readiness.ts', 'ready-files', {
    'if (unchangedMs {++ 1 +}< settings.quiet_ms)': 'a file must be unchanged for quiet_ms',
  }),
  ...faultsIn('exports/unpacking.ts', 'ready-files', {
    '[-a.ino === b.ino &&-]': 'another file of the same size and time is detected',
  }),
  ...faultsIn('windows/window-states.ts', 'window-states', {
    'const DUE_AFTER_MS = [-10-]{+11+} * MINUTE_MS;': 'a file is due ten minutes after its window',
    'const MISSING_AFTER_MS = DAY_MS{+ + 10 * MINUTE_MS+};': 'a window is missing a day after it was due',
    "[-|| status === 'done' -]?": 'done is final',
    "[-status === 'abandoned' ? 'hold' : -]'read'": 'a file of an abandoned window is held',
  }),
  ...faultsIn('windows/window-states.ts', 'overdue-search', {
    'ABANDONED_AFTER_MS = [-30-]{+31+} * DAY_MS': 'a window is abandoned after 30 days',
  }),
  ...faultsIn('windows/overdue-search.ts', 'overdue-search', {
    'WHERE [-start-]{+0+} NOT IN (': 'a waiting file counts as arrived',
    'AND [-window_start-]{+0+} NOT IN (': 'a missing window whose file waits is not abandoned',
    'if (![-isSteady || !-]isWanted': 'after a clock jump no window becomes missing',
    '[-run(DELETE_NOT_YET_DUE);-]': 'windows that a fast clock declared missing are reverted',
  }),
  ...faultsIn('ingest/steady-clock.ts', 'steady-clock', {
    '[-monotonicMs() - startedMs >= PROVEN_AFTER_MS-]{+true+}':
      'nothing is deleted in the first hour after a start',
    '[-lastAheadMs = ahead;-]': 'a corrected clock is trusted again',
  }),
  ...faultsIn('health/rules.ts', 'health', {
    'const STALLED_AFTER_MS = [-45-]{+46+} * MINUTE_MS;': 'ingest is stalled after 45 minutes',
    '[-!is_paused && -][': 'a pause alone does not degrade health',
    'pageWorthy > [-0-]{+1+} || isOld': 'an alert that needs someone degrades health',
  }),
  ...faultsIn('ingest/threads/access-connection.ts', 'key-store-errors', {
    '[-Object.assign(error, { database: NAME })-]{+error+}':
      'an error of access.db is not taken for damage of detections.db',
  }),
  ...faultsIn('appliance-ingest.ts', 'health-program', {
    'return [-isDamage(fault) ? healing(fault) : -]null;':
      'a damaged database is made anew while Wirewatch runs',
  }),
  ...faultsIn('appliance.ts', 'health-program', {
    '[-noteDamage(folder, detail);-]': 'damage that a request finds is healed, not only interrupted',
  }),
  ...faultsIn('ingest/files/finished-file.ts', 'crash', {
    '[-&& shortName(record.name) === name-]':
      'a file in .taken/ is read though the record of another has its number',
  }),
];
