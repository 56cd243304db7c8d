/** Faults in what becomes of dropped files and their rows: positions, versions, windows, times. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const INGEST_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('detection/merge.ts', [
    ['order < 0 ? a : b', 'order < 0 ? b : a', 'the first detection is the earliest', 'merge'],
    [
      'a.first_detected_estimated ? b : a',
      'a.first_detected_estimated ? a : b',
      'exact beats estimated',
      'merge',
    ],
    [
      "    compareText(a.exported_at_given ?? '', b.exported_at_given ?? '') ||\n",
      '',
      'a tie goes to the later export',
      'merge',
    ],
    ['version: known.version + 1', 'version: known.version', 'a visible change raises the version', 'merge'],
    [
      "return newer ? { kind: 'rescored', known: next } : { kind: 'unchanged' };",
      "return { kind: 'unchanged' };",
      'a new scoring is kept',
      'merge',
    ],
    [
      'match.article.print === true && !licensed ? null : match.article.url',
      'match.article.url',
      'addresses of print articles need a licence',
      'merge',
    ],
    ['    if (member !== null) sorted', '    sorted', 'an absent member is no change', 'merge'],
    ['    exported_at: null,\n    article:', '    article:', 'a new export time is no new version', 'merge'],
  ]),
  ...faultsIn('detection/band.ts', [
    ['score >= threshold', 'score > threshold', 'a band begins at its threshold', 'detection-vocabulary'],
    ['[25, 50, 75, 95]', '[25, 50, 75, 96]', 'max begins at 95', 'detection-vocabulary'],
    ['[30, 60]', '[31, 60]', 'medium begins at 30', 'detection-vocabulary'],
  ]),
  ...faultsIn('ingest/drop-folder.ts', [
    [
      'if (!isSameLook(this.look(waiting.path), waiting.look)) return false;',
      '',
      'what was changed is looked at again',
      'ingest-drop-folder',
    ],
    [
      '    return isSameLook(this.look(path), waiting.look);\n',
      '    return true;\n',
      'what was changed as it was taken is looked at again',
      'ingest-drop-folder',
    ],
    [
      'if (unchangedMs < this.#settings.quiet_ms)',
      'if (unchangedMs + 1 < this.#settings.quiet_ms)',
      'a file is at rest for quiet_ms',
      'ingest-drop-folder',
    ],
    ['a.ino === b.ino && ', '', 'another file of the same size and time is seen', 'ingest-drop-folder'],
    ['a.mtimeNs === b.mtimeNs && ', '', 'a file written anew is seen', 'ingest-drop-folder'],
  ]),
  ...faultsIn('ingest/window-file.ts', [
    [
      '    retireFailed(workshop, file);\n',
      '',
      'a failed file is archived once its window was read',
      'durability-program',
    ],
  ]),
  ...faultsIn('windows/transitions.ts', [
    [
      'const DUE_AFTER_MS = 10 * MINUTE_MS;',
      'const DUE_AFTER_MS = 11 * MINUTE_MS;',
      'a file is due ten minutes after its window',
      'windows',
    ],
    [
      'const MISSING_AFTER_MS = DAY_MS;',
      'const MISSING_AFTER_MS = DAY_MS + 10 * MINUTE_MS;',
      'a window is missing a day after it was due',
      'windows',
    ],
    [
      'ABANDONED_AFTER_MS = 30 * DAY_MS',
      'ABANDONED_AFTER_MS = 31 * DAY_MS',
      'a window is abandoned after 30 days',
      'windows',
    ],
    [
      'nowMs - known.since >= ABANDONED_AFTER_MS',
      'nowMs - known.since > ABANDONED_AFTER_MS',
      'a window is abandoned after 30 days',
      'windows',
    ],
    [
      'const HISTORY_AFTER_MS = 90 * DAY_MS;',
      'const HISTORY_AFTER_MS = 91 * DAY_MS;',
      'history begins no expectation',
      'windows-look',
    ],
    [
      'const LOOK_EVERY_MS = DAY_MS;',
      'const LOOK_EVERY_MS = DAY_MS + 1;',
      'windows are looked for once a day',
      'windows',
    ],
    [' || nowMs < lookedAtMs', '', 'a look in the future does not hold', 'windows'],
    ['  if (isWaiting) return known?.status;\n', '', 'a file that waits has arrived', 'windows'],
    ["  return status === 'done' ? 'done' : 'failed';\n", "  return 'failed';\n", 'done is final', 'windows'],
    [
      "status === 'abandoned' ? 'hold' : 'read'",
      "'read'",
      'a file of an abandoned window is held',
      'windows',
    ],
    [
      'WINDOW_MS) > HISTORY_AFTER_MS',
      'WINDOW_MS) >= HISTORY_AFTER_MS',
      'a window of 90 days ago still counts',
      'windows-look',
    ],
    [
      'windowStartMs >= expectedFromMs',
      'windowStartMs > expectedFromMs',
      'the first window is expected',
      'windows',
    ],
    [
      '(nowMs - WINDOW_MS - DUE_AFTER_MS - ms) / WINDOW_MS) + 1)',
      '(nowMs - WINDOW_MS - DUE_AFTER_MS - ms) / WINDOW_MS))',
      'a window is missing a day after it was due',
      'windows',
    ],
  ]),
  ...faultsIn('windows/ledger.ts', [
    [
      "status IN ('missing', 'abandoned') AND window_start < :window_start",
      'window_start < :window_start',
      'what was read stays when the beginning is set',
      'windows-look',
    ],
    [
      '    db.prepare(INSERT_EXPECTATION).run(window);\n',
      '    db.prepare(SET_EXPECTATION).run(window);\n',
      'the first window decides from where others are expected',
      'windows-look',
    ],
    [
      'row.window_start + WINDOW_MS;\n}\n\n/**\n * The end of the newest finished window of all',
      'row.window_start;\n}\n\n/**\n * The end of the newest finished window of all',
      'newest_done is the end of a window',
      'windows',
    ],
  ]),
  ...faultsIn('ingest/window-look.ts', [
    [
      '    if (!isSteady) {\n',
      '    if (false) {\n',
      'a clock that jumps makes nothing missing',
      'windows-look',
    ],
    [
      'lookAgainFrom = Math.min(lookAgainFrom, start)',
      'lookAgainFrom = overdueBefore',
      'a window whose file waits is looked for again',
      'windows-look',
    ],
    [
      '    forgetNotYetDue(db, exportName, overdueBefore);\n',
      '',
      'what a fast clock said is taken back',
      'windows-look',
    ],
  ]),
  ...faultsIn('ingest/steady-clock.ts', [
    ['    this.#aheadMs = aheadMs;\n', '', 'a clock that was set stays trusted', 'clock'],
    [
      'Math.abs(aheadMs - this.#aheadMs)',
      '(aheadMs - this.#aheadMs)',
      'a clock that goes back jumps, too',
      'clock',
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
    ['nowMs - endMs <= ms', 'nowMs - endMs < ms', 'more than 45 minutes, and more than an hour', 'health'],
    ['    !is_paused && [', '    [', 'a pause alone keeps health', 'health'],
    [
      'pageWorthy > 0 || isOld',
      'pageWorthy > 1 || isOld',
      'an alert that needs someone degrades health',
      'health',
    ],
    ['(isCheck || before.has(name))', 'isCheck', 'an alert that is open stays between checks', 'health'],
  ]),
  ...faultsIn('ingest/sleeper.ts', [
    ['        clearTimeout(timer);\n', '', 'a timer that is not needed any more is cleared', 'timers'],
  ]),
];
