/** Faults in the handling of dropped files and their rows: positions, versions, windows, times. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const INGEST_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('detection/merge.ts', [
    ['order < 0 ? a : b', 'order < 0 ? b : a', 'the earliest first detection wins', 'merge'],
    [
      'a.first_detected_estimated ? b : a',
      'a.first_detected_estimated ? a : b',
      'exact beats estimated',
      'merge',
    ],
    [
      "    compareText(a.exported_at_given ?? '', b.exported_at_given ?? '') ||\n",
      '',
      'of equal scorings, the later export wins',
      'merge',
    ],
    [
      'version: known.version + 1',
      'version: known.version',
      'a visible change increases the version',
      'merge',
    ],
    [
      "return newer ? { kind: 'rescored', known: next } : { kind: 'unchanged' };",
      "return { kind: 'unchanged' };",
      'a newer scoring is stored',
      'merge',
    ],
    ['isPrint === true && !licensed ? null : url', 'url', 'URLs of print articles need a licence', 'merge'],
    ['    if (member !== null) sorted', '    sorted', 'an absent member equals null', 'merge'],
    [', exported_at: null })', ' })', 'a new export time creates no version', 'merge'],
  ]),
  ...faultsIn('detection/band.ts', [
    ['score >= threshold', 'score > threshold', 'a band begins at its threshold', 'vocabulary'],
    ['[25, 50, 75, 95]', '[25, 50, 75, 96]', 'max begins at 95', 'vocabulary'],
    ['[30, 60]', '[31, 60]', 'medium begins at 30', 'vocabulary'],
  ]),
  ...faultsIn('ingest/drop/retention.ts', [
    [
      '    deleteExpired(files, nowMs - archiveDays * DAY_MS);\n    lastMs = nowMs;\n',
      '    lastMs = nowMs;\n    deleteExpired(files, nowMs - archiveDays * DAY_MS);\n',
      'old files are deleted as soon as there is space',
      'archive',
    ],
  ]),
  ...faultsIn('ingest/apply/window-file.ts', [
    [
      'if (number !== record.number && !isThereIn(',
      'if (false && !isThereIn(',
      'a file that a reset reads again has one record',
      'failed-windows',
    ],
  ]),
  ...faultsIn('ingest/drop/drop-folder.ts', [
    [
      'if (!stats.isFile() || !isSameSnapshot(stats, waiting.snapshot)) return false;',
      '',
      'a changed file is checked again',
      'ready-files',
    ],
    [
      '    return this.isUnchanged({ ...waiting, path });\n',
      '    return true;\n',
      'a file that changed while it was taken is checked again',
      'ready-files',
    ],
  ]),
  ...faultsIn('ingest/threads/ingest-loop.ts', [
    [
      '      processed += 1;\n      await this.#turn();\n',
      '      processed += 1;\n',
      'a stop does not wait for many files',
      'hostile-exporter',
    ],
    [
      '    this.#checkpoint(CHECKPOINT_BYTES);\n  }',
      '  }',
      'the write-ahead log stays small',
      'hostile-exporter',
    ],
  ]),
  ...faultsIn('ingest/file-record.ts', [
    ['numbers.slice(REFUSED_RECORDS_MAX)', '[]', 'records of refused files are bounded', 'hostile-exporter'],
  ]),
  ...faultsIn('ingest/rules/read-export.ts', [
    [
      '    this.isOver = this.#errorsTotal >= this.#order.errors_max;\n',
      '',
      'a file that fails is read no further',
      'reading-settings',
    ],
  ]),
  ...faultsIn('ingest/drop/own-folder.ts', [
    ['  if (uid !== user)\n', '  if (false)\n', 'an own folder belongs to Wirewatch', 'hostile-exporter'],
    [
      '  if ((mode & WRITABLE_BY_OTHERS) !== 0)\n',
      '  if (false)\n',
      'nobody else writes to an own folder',
      'hostile-exporter',
    ],
    [
      'constants.O_DIRECTORY | constants.O_NOFOLLOW',
      'constants.O_DIRECTORY',
      'an own folder is no link',
      'hostile-exporter',
    ],
    [
      'at: HAS_OPEN_FILES ?',
      'at: false ?',
      'a folder cannot be exchanged while it is used',
      'hostile-exporter',
    ],
    [
      '!isTrusted(lstatSync(next)) || ',
      '',
      'only the operator makes links on the way to the drop folder',
      'hostile-exporter',
    ],
  ]),
  ...faultsIn('ingest/drop/readiness.ts', [
    [
      'if (unchangedMs < settings.quiet_ms)',
      'if (unchangedMs + 1 < settings.quiet_ms)',
      'a file must be unchanged for quiet_ms',
      'ready-files',
    ],
    ['a.ino === b.ino && ', '', 'another file of the same size and time is detected', 'ready-files'],
    ['a.mtimeNs === b.mtimeNs && ', '', 'a rewritten file is detected', 'ready-files'],
  ]),
  ...faultsIn('ingest/apply/window-file.ts', [
    [
      '    retireFailed(files, file);\n',
      '',
      'a failed file is archived once its window is done',
      'durability-program',
    ],
  ]),
  ...faultsIn('windows/window-states.ts', [
    [
      'const DUE_AFTER_MS = 10 * MINUTE_MS;',
      'const DUE_AFTER_MS = 11 * MINUTE_MS;',
      'a file is due ten minutes after its window',
      'window-states',
    ],
    [
      'const MISSING_AFTER_MS = DAY_MS;',
      'const MISSING_AFTER_MS = DAY_MS + 10 * MINUTE_MS;',
      'a window is missing a day after it was due',
      'window-states',
    ],
    [
      'ABANDONED_AFTER_MS = 30 * DAY_MS',
      'ABANDONED_AFTER_MS = 31 * DAY_MS',
      'a window is abandoned after 30 days',
      'overdue-search',
    ],
    [
      'const HISTORY_AFTER_MS = 90 * DAY_MS;',
      'const HISTORY_AFTER_MS = 91 * DAY_MS;',
      'old windows do not set the first expected window',
      'overdue-search',
    ],
    [
      'const LOOK_EVERY_MS = DAY_MS;',
      'const LOOK_EVERY_MS = DAY_MS + 1;',
      'missing windows are searched for once a day',
      'window-states',
    ],
    [' || nowMs < lookedAtMs', '', 'a search time in the future is ignored', 'window-states'],
    [" || status === 'done' ?", ' ?', 'done is final', 'window-states'],
    [
      "status === 'abandoned' ? 'hold' : 'read'",
      "'read'",
      'a file of an abandoned window is held',
      'window-states',
    ],
    [
      'WINDOW_MS) > HISTORY_AFTER_MS',
      'WINDOW_MS) >= HISTORY_AFTER_MS',
      'a window of 90 days ago still counts',
      'overdue-search',
    ],
    [
      '(nowMs - WINDOW_MS - DUE_AFTER_MS - ms) / WINDOW_MS) + 1)',
      '(nowMs - WINDOW_MS - DUE_AFTER_MS - ms) / WINDOW_MS))',
      'a window is missing a day after it was due',
      'window-states',
    ],
  ]),
  ...faultsIn('windows/ledger.ts', [
    ['since <= :before', 'since < :before', 'a window is abandoned after 30 days', 'overdue-search'],
    [
      'window_start NOT IN (',
      '0 NOT IN (',
      'a missing window whose file waits is not abandoned',
      'overdue-search',
    ],
    [
      "status IN ('missing', 'abandoned') AND window_start < :window_start",
      'window_start < :window_start',
      'done windows stay when the first expected window is set',
      'overdue-search',
    ],
    [
      '    db.prepare(INSERT_EXPECTATION).run(window);\n',
      '    db.prepare(SET_EXPECTATION).run(window);\n',
      'the first window sets the first expected one',
      'overdue-search',
    ],
    ['row.start + WINDOW_MS', 'row.start', 'newest_done is the end of a window', 'window-states'],
  ]),
  ...faultsIn('windows/overdue-search.ts', [
    ['if (waiting.has(window_start))', 'if (false)', 'a waiting file counts as arrived', 'overdue-search'],
    ['if (!isSteady || !(', 'if (!(', 'after a clock jump no window becomes missing', 'overdue-search'],
    [
      'resumeFrom = Math.min(resumeFrom, window_start)',
      'resumeFrom = overdueBefore',
      'a window with a waiting file is searched for again',
      'overdue-search',
    ],
    [
      '    forgetNotYetDue(db, exportName, overdueBefore);\n',
      '',
      'windows that a fast clock declared missing are reverted',
      'overdue-search',
    ],
    [
      '    if (nowMs < newestWindowEnd(db)) return null;\n',
      '',
      'a slow clock reverts no missing window',
      'overdue-search',
    ],
  ]),
  ...faultsIn('ingest/steady-clock.ts', [
    [
      'monotonicMs() - startedMs >= PROVEN_AFTER_MS',
      'true',
      'nothing is deleted in the first hour after a start',
      'steady-clock',
    ],
    ['    lastAheadMs = ahead;\n', '', 'a corrected clock is trusted again', 'steady-clock'],
    [
      'Math.abs(ahead - lastAheadMs)',
      '(ahead - lastAheadMs)',
      'setting the clock back is a jump, too',
      'steady-clock',
    ],
  ]),
  ...faultsIn('health/rules.ts', [
    [
      'const STALLED_AFTER_MS = 45 * MINUTE_MS;',
      'const STALLED_AFTER_MS = 46 * MINUTE_MS;',
      'ingest is stalled after 45 minutes',
      'health',
    ],
    [
      'const DEGRADED_AFTER_MS = HOUR_MS;',
      'const DEGRADED_AFTER_MS = HOUR_MS + 1;',
      'health is degraded after an hour',
      'health',
    ],
    [
      'nowMs - endMs <= ms',
      'nowMs - endMs < ms',
      'exactly 45 minutes, and exactly an hour, are still allowed',
      'health',
    ],
    ['    !is_paused && [', '    [', 'a pause alone does not degrade health', 'health'],
    [
      'pageWorthy > 0 || isOld',
      'pageWorthy > 1 || isOld',
      'an alert that needs someone degrades health',
      'health',
    ],
    ['(isCheck || before.has(name))', 'isCheck', 'an open alert stays open between checks', 'health'],
  ]),
  ...faultsIn('ingest/threads/access-connection.ts', [
    [
      'Object.assign(error, { database: NAME })',
      'error',
      'an error of access.db is not taken for damage of detections.db',
      'key-store-errors',
    ],
  ]),
  ...faultsIn('appliance-ingest.ts', [
    [
      'RESUMED_AFTER_MS = paced(10 * SECOND_MS)',
      'RESUMED_AFTER_MS = 0',
      'an alert does not open and close at each start of the thread',
      'key-store-errors',
    ],
    [
      'return isDamage(fault) ? healing(fault) : null;',
      'return null;',
      'a damaged database is made anew while Wirewatch runs',
      'health-program',
    ],
    ['performance.now() >= notBeforeMs', 'true', 'it is not made anew again and again', 'health-program'],
  ]),
  ...faultsIn('appliance.ts', [
    [
      '    noteDamage(folder, detail);\n',
      '',
      'damage that a request finds is healed, not only interrupted',
      'health-program',
    ],
    ['    stores.reader.close();\n', '', 'a damaged database is not read', 'health-program'],
  ]),
  ...faultsIn('ingest/drop/finished-file.ts', [
    [
      ' && shortName(record.name) === name',
      '',
      'a file in .taken/ is read though the record of another has its number',
      'crash',
    ],
  ]),
  ...faultsIn('ingest/apply/backfill.ts', [
    [
      '  if (same === null && isWaiting()) return null;\n',
      '',
      'a backfill without a file does not fail while the file waits to be read again',
      'archive',
    ],
  ]),
  ...faultsIn('ingest/threads/wakeable-timer.ts', [
    [', { signal: this.#waking.signal }', '', 'a sleep that is ended early leaves no timer', 'timers'],
  ]),
];
