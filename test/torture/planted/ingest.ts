/** Faults in the handling of dropped files and their rows: positions, versions, windows, times. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const INGEST_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('ingest/files/changed-files.ts', 'finished-files', {
    '[-readAgain(files, record, destination);-]': 'rows that are written into a file after it was read come',
  }),
  ...faultsIn('ingest/files/orphaned.ts', 'archive', {
    '[-if (!hasArchive(drop.root)) return;-]': 'a disk that is not mounted yet is no empty archive',
  }),
  ...faultsIn('ingest/threads/retry-pauses.ts', 'disk-full', {
    "[-setCondition('disk full', err.message);-]": 'a full disk is an alert while ingest waits',
  }),
  ...faultsIn('detection/merge.ts', 'merge', {
    'order < 0 ? [-a : b-]{+b : a+}': 'the earliest first detection wins',
    'version: known.version[- + 1-]': 'a visible change increases the version',
    '[-isPrint === true && !licensed ? null : -]url': 'URLs of print articles need a licence',
  }),
  ...faultsIn('detection/band.ts', 'vocabulary', {
    'score >[-=-] threshold': 'a band begins at its threshold',
  }),
  ...faultsIn('ingest/apply/window-file.ts', 'failed-windows', {
    'if ([-number !== record.number-]{+false+} && !isThereIn(':
      'a file that a reset reads again has one record',
  }),
  ...faultsIn('drop/drop-folder.ts', 'ready-files', {
    '[-if (!stats.isFile() || !isSameSnapshot(stats, waiting.snapshot)) return false;-]':
      'a changed file is checked again',
  }),
  ...faultsIn('ingest/reading/read-export.ts', 'reading-settings', {
    '[-this.isOver = this.#errorsTotal >= this.#order.errors_max;-]': 'a file that fails is read no further',
  }),
  ...faultsIn('drop/own-folder.ts', 'hostile-exporter', {
    'constants.O_DIRECTORY[- | constants.O_NOFOLLOW-]': 'an own folder is no link',
  }),
  ...faultsIn('ingest/requests/replay.ts', 'other-shapes', {
    'earliest, [-mapping, -]streams': 'an archived file is replayed with the mapping of its first reading',
  }),
  ...faultsIn('windows/window-states.ts', 'window-states', {
    'const MISSING_AFTER_MS = DAY_MS{+ + 10 * MINUTE_MS+};': 'a window is missing a day after it was due',
    "[-status === 'abandoned' ? 'hold' : -]'read'": 'a file of an abandoned window is held',
  }),
  ...faultsIn('windows/window-states.ts', 'overdue-search', {
    'ABANDONED_AFTER_MS = [-30-]{+31+} * DAY_MS': 'a window is abandoned after 30 days',
  }),
  ...faultsIn('windows/overdue-search.ts', 'overdue-search', {
    'if (![-isSteady || !-]isWanted': 'after a clock jump no window becomes missing',
  }),
  ...faultsIn('ingest/steady-clock.ts', 'steady-clock', {
    '[-monotonicMs() - startedMs >= PROVEN_AFTER_MS-]{+true+}':
      'nothing is deleted in the first hour after a start',
  }),
  ...faultsIn('health/rules.ts', 'health', {
    'const STALLED_AFTER_MS = [-45-]{+46+} * MINUTE_MS;': 'ingest is stalled after 45 minutes',
  }),
  ...faultsIn('appliance-ingest.ts', 'health-program', {
    'return [-isDamage(fault) ? healing(fault) : -]null;':
      'a damaged database is made anew while Wirewatch runs',
  }),
  ...faultsIn('ingest/files/finished-file.ts', 'crash', {
    '[-&& shortName(record.name) === name-]':
      'a file in .taken/ is read though the record of another has its number',
  }),
];
