/** `wirewatch ingest validate` and `ingest explain`: what a file holds, and what it would bring. */
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import type { Command } from 'commander';
import type { Config } from '../config/load.ts';
import type { Effect, ReadingRules } from '../ingest/explanation.ts';
import { type ExportFileName, judgeName, judgeWindow, switchedOff } from '../ingest/export-name.ts';
import type { LineError, ReadingResult } from '../ingest/export-reading.ts';
import { filesNamed, findSameContent } from '../ingest/file-record.ts';
import { readSubscribers, type Subscribers } from '../ingest/subscribers.ts';
import { Refused } from '../refused.ts';
import { openReader } from '../store/database.ts';
import { formatMs } from '../time.ts';
import { findWindow } from '../windows/ledger.ts';
import { configOf, folderOf, withDetections } from './config.ts';
import { type FileDocument, fileDocument, fileTable } from './ingest-status.ts';
import { addExamples, commonOptions } from './options.ts';
import { print, progress } from './output.ts';

export function registerValidate(ingest: Command): void {
  const command = ingest
    .command('validate')
    .argument('<file>', 'an export file, wherever it lies')
    .description('check a file against the export format, as the appliance would; nothing is changed')
    .action(async (path: string, _options, self: Command) => {
      const verdict = await validate(path, configOf(self));
      print(verdict, { json: commonOptions(self).json, text: () => verdictText(verdict) });
      if (!verdict.valid) process.exitCode = 1;
    });
  addExamples(command, ['ingest validate newswire.20261121T1010Z.ndjson.gz']);
}

export function registerExplain(ingest: Command): void {
  const command = ingest
    .command('explain')
    .argument('<file>', 'an export file, or the name of one that was dropped before')
    .description(
      'say what the appliance makes of a file: its window, its rows, what it would change, what became of it',
    )
    .action(async (path: string, _options, self: Command) => {
      const explanation = await explain(path, configOf(self));
      print(explanation, { json: commonOptions(self).json, text: () => explanationText(explanation) });
    });
  addExamples(command, [
    'ingest explain /srv/exports/newswire.20261121T1010Z.ndjson.gz',
    'ingest explain newswire.20261121T1010Z.ndjson.gz --json',
  ]);
}

interface Verdict {
  readonly file: string;
  readonly valid: boolean;
  readonly export: string | null;
  readonly window_start: string | null;
  readonly label: string | null;
  readonly rows: number;
  /** Why it is not valid, where that is not a matter of single rows. */
  readonly reason: string | null;
  readonly errors_total: number;
  readonly errors: readonly LineError[];
  readonly ignored_columns: readonly string[];
}

async function validate(path: string, config: Config): Promise<Verdict> {
  requireFile(path);
  const judged = judgeName(basename(path));
  if (judged.kind !== 'export') {
    const reason =
      judged.kind === 'refused' ? judged.reason : 'the name is one of a file that is still being written';
    return { ...NOT_AN_EXPORT, file: path, reason };
  }
  const { checkExport } = await import('../ingest/explanation.ts');
  const shown = progress(judged.file.name);
  const rules = { ...rulesOf(config), bad_rows: 'fail' } as const;
  const result = await checkExport(path, judged.file, rules, { onProgress: (rows) => shown.update(rows) });
  shown.end();
  return { file: path, ...nameDocument(judged.file), ...resultDocument(result) };
}

interface Explanation extends Verdict {
  /** What happens to the file when it is dropped now. */
  readonly when_dropped: string;
  readonly window_status: string | null;
  /** The number of the file that brought the same content before. */
  readonly same_content_as: number | null;
  /** Rows of subscriptions or content types that the appliance does not have. */
  readonly unknown_rows: Readonly<Record<string, number>>;
  /** What its rows would change, as things stand; null where the file would not be applied. */
  readonly effect: Effect | null;
  /** What became of files that were dropped under this name before, the newest first. */
  readonly history: readonly FileDocument[];
}

async function explain(path: string, config: Config): Promise<Explanation> {
  const name = basename(path);
  const history = withDetections(config, [], (db) => filesNamed(db, name).map(fileDocument));
  const judged = judgeName(name);
  const untold = { window_status: null, same_content_as: null, unknown_rows: {}, effect: null, history };
  if (!existsSync(path)) {
    if (history.length === 0) requireFile(path);
    const named = judged.kind === 'export' ? nameDocument(judged.file) : {};
    return {
      ...NOT_AN_EXPORT,
      ...named,
      file: path,
      when_dropped: 'there is no file to look into, only its history',
      ...untold,
    };
  }
  const verdict = await validate(path, config);
  if (judged.kind !== 'export') {
    const fate =
      judged.kind === 'refused' ? 'it goes to refused/' : 'it is left alone until it has its final name';
    return { ...verdict, when_dropped: fate, ...untold };
  }
  const { file } = judged;
  const status = withDetections(config, null, (db) =>
    file.kind === 'window' ? (findWindow(db, file.export, file.window_start)?.status ?? null) : null,
  );
  const { effect, result } = await effectOf(path, file, config);
  const { sha256, unknown_rows } = result.counts;
  const same = withDetections(config, null, (db) => findSameContent(db, file, sha256));
  return {
    ...verdict,
    when_dropped: fateOf(file, config.exports[file.export].enabled, result, status, same),
    window_status: status,
    same_content_as: same,
    unknown_rows,
    effect: result.kind === 'read' ? effect : null,
    history,
  };
}

/** Reads the file once more, now with the streams that there are, and counts what it would change. */
async function effectOf(
  path: string,
  file: ExportFileName,
  config: Config,
): Promise<{ effect: Effect; result: ReadingResult }> {
  const { checkExport, EffectCounter } = await import('../ingest/explanation.ts');
  const subscribers = subscribersOf(config);
  const nothing: Effect = { rows: 0, created: 0, updated: 0, rescored: 0, unchanged: 0 };
  const { detections } = folderOf(config);
  const db = existsSync(detections) ? openReader(detections) : null;
  try {
    const counter = db === null ? null : new EffectCounter(db, new Set(subscribers.licensed));
    const rules = { ...rulesOf(config), ...subscribers };
    const result = await checkExport(path, file, rules, { onBatch: (batch) => counter?.add(batch) });
    return { effect: counter?.effect ?? nothing, result };
  } finally {
    db?.close();
  }
}

function subscribersOf(config: Config): Subscribers {
  const { access } = folderOf(config);
  if (!existsSync(access)) return { streams: [], licensed: [] };
  const db = openReader(access);
  try {
    return readSubscribers(db, (exportName) => config.exports[exportName].enabled);
  } finally {
    db.close();
  }
}

function fateOf(
  file: ExportFileName,
  isEnabled: boolean,
  result: ReadingResult,
  status: string | null,
  same: number | null,
): string {
  if (file.kind === 'window') {
    const due = judgeWindow(file.window_start, Date.now());
    if (due === 'too far ahead') return 'it goes to refused/: its window is more than a day ahead';
    if (due === 'early') return 'it stays where it is until its window has ended, and is read then';
  }
  if (!isEnabled) return `it goes to refused/: ${switchedOff(file.export)}`;
  if (status === 'failed' || status === 'abandoned') return `it goes to held/: its window is ${status}`;
  if (result.kind === 'truncated')
    return 'it is given time to grow, then goes to failed/: its packing is cut off';
  if (result.kind !== 'read') return 'it goes to failed/ with the reasons, and nothing of it is applied';
  if (same !== null) return `it goes to archive/ and changes nothing: file ${same} brought the same content`;
  return 'it is applied and goes to archive/';
}

const NOT_AN_EXPORT: Omit<Verdict, 'file'> = {
  valid: false,
  export: null,
  window_start: null,
  label: null,
  rows: 0,
  reason: null,
  errors_total: 0,
  errors: [],
  ignored_columns: [],
};

function nameDocument(file: ExportFileName): Pick<Verdict, 'export' | 'window_start' | 'label'> {
  return {
    export: file.export,
    window_start: file.kind === 'window' ? formatMs(file.window_start) : null,
    label: file.kind === 'backfill' ? file.label : null,
  };
}

function resultDocument(
  result: ReadingResult,
): Pick<Verdict, 'valid' | 'rows' | 'reason' | 'errors_total' | 'errors' | 'ignored_columns'> {
  const bad = result.kind === 'bad' ? result : null;
  return {
    valid: result.kind === 'read',
    rows: result.counts.rows,
    reason: 'reason' in result ? result.reason : null,
    errors_total: bad?.errors_total ?? 0,
    errors: bad?.errors ?? [],
    ignored_columns: result.counts.ignored_columns,
  };
}

function rulesOf(config: Config): ReadingRules {
  return {
    earliest: formatMs(config.earliestTimeMs),
    require_trailer: config.ingest.require_trailer,
    bad_rows: config.ingest.bad_rows,
  };
}

function requireFile(path: string): void {
  if (existsSync(path)) return;
  throw new Refused('failed', `there is no file ${path}. Give the path of an export file.`);
}

function verdictText(verdict: Verdict): string {
  const about =
    verdict.export === null
      ? ''
      : ` (${verdict.export} ${verdict.window_start ?? `backfill ${verdict.label}`})`;
  const ignored =
    verdict.ignored_columns.length === 0 ? [] : [`ignored columns: ${verdict.ignored_columns.join(', ')}`];
  if (verdict.valid) return [`good: ${verdict.rows} rows${about}`, ...ignored].join('\n');
  const errors = verdict.errors.map(
    ({ line, column, value, expected }) =>
      `  line ${line}${column === null ? '' : `, ${column}`}: expected ${expected}${value === null ? '' : `, found ${JSON.stringify(value)}`}`,
  );
  const more =
    verdict.errors_total > errors.length ? [`  … ${verdict.errors_total - errors.length} more`] : [];
  const why =
    verdict.reason ??
    `${verdict.errors_total} ${verdict.errors_total === 1 ? 'error' : 'errors'} in ${verdict.rows} rows`;
  return [`bad: ${why}${about}`, ...errors, ...more, ...ignored].join('\n');
}

function explanationText(explanation: Explanation): string {
  const { effect, history, unknown_rows, window_status } = explanation;
  const unknown = Object.entries(unknown_rows).map(
    ([stream, rows]) => `  ${rows} rows of ${stream}: no such subscription or content type, skipped`,
  );
  const lines = [
    ...(history.length > 0 && explanation.rows === 0 && explanation.errors_total === 0
      ? []
      : [verdictText(explanation)]),
    `when dropped now: ${explanation.when_dropped}`,
    ...(window_status === null ? [] : [`its window is ${window_status}`]),
    ...(effect === null
      ? []
      : [
          `it would bring: ${effect.created} created, ${effect.updated} updated, ${effect.rescored} re-scored, ${effect.unchanged} unchanged${effect.rows < explanation.rows - sumOf(unknown_rows) ? ` (of the first ${effect.rows} rows)` : ''}`,
        ]),
    ...unknown,
    ...(history.length === 0 ? [] : ['', 'dropped before under this name:', fileTable(history)]),
  ];
  return lines.join('\n');
}

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
