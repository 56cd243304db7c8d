/** `wirewatch ingest validate` and `ingest explain`: what a file contains, and what it would change. */
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type Config, holdRules } from '../config/load.ts';
import { counted, grouped } from '../counted.ts';
import { EXPORT_COLUMNS } from '../exports/columns.ts';
import type { ErrorGroup } from '../exports/error-groups.ts';
import { type ExportFileName, parseFileName, switchedOff, windowReadiness } from '../exports/file-name.ts';
import { type FileDocument, fileDocument, filesNamed, findSameContent } from '../ingest/files/file-record.ts';
import type { Effect, ReadingRules } from '../ingest/reading/dry-run.ts';
import type { ReadingResult } from '../ingest/reading/read-export.ts';
import { readSubscribers, type Subscribers } from '../ingest/threads/access-connection.ts';
import { nearest } from '../nearest.ts';
import { anyText, required, value } from '../operations/member.ts';
import { fileTable } from '../operations/status-views.ts';
import { failed } from '../refused.ts';
import { openDatabase } from '../store/database.ts';
import { joined } from '../text-layout.ts';
import { formatMs } from '../time.ts';
import { findWindow } from '../windows/ledger.ts';
import { arrival, isHistory, type WindowStatus } from '../windows/window-states.ts';
import { subcommand } from './command.ts';
import { configOf, folderOf, withDetections } from './installation.ts';
import { operationGroup } from './operation-command.ts';
import { DROP_OPTION } from './options.ts';
import { createProgress } from './output.ts';

const COLUMN_NAMES = EXPORT_COLUMNS.map(({ name }) => name);

const validate = subcommand(
  'validate',
  'check a file against the export format, exactly as Wirewatch does. Changes nothing. Exit code 1 if the file is not valid',
  {
    members: { file: required(value(anyText, { hint: 'path of an export file' })) },
    operands: ['file'],
    examples: ['ingest validate newswire.20261121T1010Z.ndjson.gz'],
    async run({ file }, self) {
      const verdict = await validateFile(file, configOf(self));
      return { value: verdict, text: () => verdictText(verdict), failed: !verdict.valid };
    },
  },
);

const explain = subcommand(
  'explain',
  'show what Wirewatch would do with a file: its window, its rows and what they would change, and what happened to earlier files with its name. Exit code 1 if the file is not valid',
  {
    members: {
      file: required(
        value(anyText, { hint: 'path of an export file, or the name of one that was dropped earlier' }),
      ),
    },
    operands: ['file'],
    options: [DROP_OPTION],
    examples: [
      'ingest explain /srv/exports/newswire.20261121T1010Z.ndjson.gz',
      'ingest explain newswire.20261121T1010Z.ndjson.gz --json',
    ],
    async run({ file }, self) {
      const explanation = await explainFile(file, configOf(self));
      return {
        value: explanation,
        text: () => explanationText(explanation),
        // A file that no longer exists is not invalid.
        failed: !explanation.valid && existsSync(explanation.file),
      };
    },
  },
);

export const register = operationGroup('ingest', validate, explain);

type Verdict = ReturnType<typeof verdictOf>;

/**
 * @param named null if the name is not that of an export file
 * @param result null if the file was not read
 * @param unread why it was not read
 */
function verdictOf(
  file: string,
  named: ExportFileName | null,
  result: ReadingResult | null,
  unread: string | null = null,
) {
  const bad = result?.kind === 'bad' ? result : null;
  return {
    file,
    valid: result?.kind === 'read',
    export: named?.export ?? null,
    window_start: named?.kind === 'window' ? formatMs(named.window_start) : null,
    label: named?.kind === 'backfill' ? named.label : null,
    rows: result?.counts.rows ?? 0,
    /** Why it is not valid, if the cause is not in single rows. */
    reason: result !== null && 'reason' in result ? result.reason : unread,
    errors_total: bad?.errors_total ?? 0,
    rows_with_errors: bad?.rows_with_errors ?? 0,
    errors: bad?.errors ?? [],
    /** All errors by column and kind. */
    error_groups: bad?.error_groups ?? [],
    ignored_columns: result?.counts.ignored_columns ?? [],
    /** Rows whose publisher name is ignored, because they have no article_publisher_id. */
    names_without_id: result?.counts.names_without_id ?? 0,
  };
}

/** @param name under which the file was dropped, or would be */
async function validateFile(path: string, config: Config, name = basename(path)): Promise<Verdict> {
  requireFile(path);
  const checked = parseFileName(name);
  if (checked.kind !== 'export') {
    const unread =
      checked.kind === 'refused' ? checked.reason : 'the name marks a file that is still being written';
    return verdictOf(path, null, null, unread);
  }
  const { file } = checked;
  const { checkExport } = await import('../ingest/reading/dry-run.ts');
  const rules = { ...rulesOf(config), bad_rows: 'fail' } as const;
  using progress = createProgress();
  const onProgress = (rows: number) => progress.update(file.name, rows);
  const result = await checkExport(path, file, rules, { onProgress });
  return verdictOf(path, file, result);
}

interface Explanation extends Verdict {
  /** What happens to the file if it is dropped now. */
  readonly when_dropped: string;
  readonly window_status: string | null;
  /** What to do instead, if the file would do something that is seldom intended; else null. */
  readonly advice: string | null;
  /** The number of an earlier file with the same content. */
  readonly same_content_as: number | null;
  /** Rows of subscriptions or content types that do not exist. */
  readonly unknown_rows: Readonly<Record<string, number>>;
  /** What its rows would change now; null if the file would not be applied. */
  readonly effect: Effect | null;
  /** Files that were dropped earlier with this name, and their outcome, the newest first. */
  readonly history: readonly FileDocument[];
}

async function explainFile(fileOrName: string, config: Config): Promise<Explanation> {
  const name = basename(fileOrName);
  const history = withDetections(config, [], (db) => filesNamed(db, name).map(fileDocument));
  const path = existsSync(fileOrName) ? fileOrName : (pathOfDropped(history, config) ?? fileOrName);
  const checked = parseFileName(name);
  const unread = {
    window_status: null,
    advice: null,
    same_content_as: null,
    unknown_rows: {},
    effect: null,
    history,
  };
  if (!existsSync(path)) {
    if (history.length === 0) requireFile(path);
    return {
      ...verdictOf(path, checked.kind === 'export' ? checked.file : null, null),
      when_dropped: 'nothing would happen: the file is no longer there, and only its history is known',
      ...unread,
    };
  }
  const verdict = await validateFile(path, config, name);
  if (checked.kind !== 'export') {
    const when_dropped =
      checked.kind === 'refused'
        ? 'it would be refused, because of its name'
        : 'it would be ignored until it has its final name';
    return { ...verdict, when_dropped, ...unread };
  }
  const { file } = checked;
  const { effect, result } = await effectOf(path, file, config);
  const { sha256, unknown_rows } = result.counts;
  const { status, same } = withDetections<Known>(config, { status: null, same: null }, (db) => ({
    status: file.kind === 'window' ? (findWindow(db, file.export, file.window_start)?.status ?? null) : null,
    same: findSameContent(db, file, sha256),
  }));
  return {
    ...verdict,
    when_dropped: whenDropped(file, config, result, { status, same }),
    window_status: status,
    advice: file.kind === 'window' && isHistory(file.window_start, Date.now()) ? backfillAdvice(file) : null,
    same_content_as: same,
    unknown_rows,
    effect: result.kind === 'read' ? effect : null,
    history,
  };
}

/** What the database has about a file: the status of its window, and the number of a file with the same content. */
type Known = Readonly<{ status: WindowStatus | null; same: number | null }>;

/** The path of the newest file that was dropped with a name, if it still exists. */
function pathOfDropped(history: readonly FileDocument[], config: Config): string | undefined {
  return history
    .flatMap(({ destination }) => (destination === null ? [] : [join(config.ingest.drop, destination)]))
    .find((path) => existsSync(path));
}

function backfillAdvice({ export: exportName, form }: ExportFileName): string {
  return `its window ended more than 90 days ago. Drop old data as a backfill: rename the file to ${exportName}.backfill-LABEL.${form}`;
}

/** Reads the file once more, with the existing streams, and counts what it would change. */
async function effectOf(
  path: string,
  file: ExportFileName,
  config: Config,
): Promise<{ effect: Effect; result: ReadingResult }> {
  const { checkExport, EffectCounter } = await import('../ingest/reading/dry-run.ts');
  const subscribers = subscribersOf(config);
  const nothing: Effect = { rows: 0, created: 0, updated: 0, rescored: 0, unchanged: 0 };
  const { detections } = folderOf(config);
  using db = existsSync(detections) ? openDatabase(detections, 'read') : null;
  const counter = db === null ? null : new EffectCounter(db, new Set(subscribers.licensed));
  const rules = { ...rulesOf(config), ...subscribers };
  const result = await checkExport(path, file, rules, { onBatch: (batch) => counter?.add(batch) });
  return { effect: counter?.effect ?? nothing, result };
}

function subscribersOf(config: Config): Subscribers {
  const { access } = folderOf(config);
  if (!existsSync(access)) return { streams: [], licensed: [] };
  using db = openDatabase(access, 'read');
  return readSubscribers(db, holdRules(config).enabled_exports);
}

function whenDropped(
  file: ExportFileName,
  config: Config,
  result: ReadingResult,
  { status, same }: Known,
): string {
  if (file.kind === 'window') {
    const due = windowReadiness(file.window_start, Date.now());
    if (due === 'too far ahead')
      return 'it would be refused, because its window is more than a day in the future';
    if (due === 'early') return 'it would stay where it is until its window has ended, and then be read';
  }
  if (!config.exports[file.export].enabled) return `it would be refused: ${switchedOff(file.export)}`;
  if (arrival(status ?? undefined, config.ingest.failed_windows) === 'hold')
    return `it would be held, because its window is ${status}`;
  if (result.kind === 'truncated')
    return 'it would fail unless it is still being written, because its compressed data is truncated';
  if (result.kind !== 'read') return 'it would fail, and none of its rows would be applied';
  if (same !== null) return `it would change nothing, because file number ${same} had the same content`;
  return 'it would be applied';
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
  throw failed(`there is no file ${path}. Give the path of an export file.`);
}

function verdictText(verdict: Verdict): string {
  const about =
    verdict.export === null
      ? ''
      : ` (${verdict.export} ${verdict.window_start ?? `backfill ${verdict.label}`})`;
  const notes = [
    verdict.ignored_columns.length > 0 &&
      `ignored columns: ${verdict.ignored_columns.map(withSuggestion).join(', ')}`,
    verdict.names_without_id > 0 &&
      `${counted(verdict.names_without_id, 'row')} with article_publisher_name but without article_publisher_id: the name is ignored`,
  ];
  if (verdict.valid) return joined('\n', [`valid: ${counted(verdict.rows, 'row')}${about}`, ...notes]);
  const errors = verdict.error_groups.map(groupText);
  const grouped = verdict.error_groups.reduce((sum, { count }) => sum + count, 0);
  const left = verdict.errors_total - grouped;
  const more = left > 0 && `  … ${counted(left, 'error')} of other kinds`;
  const why = verdict.reason ?? `${counted(verdict.errors_total, 'error')} in ${rowsText(verdict)}`;
  return joined('\n', [`invalid: ${why}${about}`, ...errors, more, ...notes]);
}

/** If the file as a whole breaks the format, no row has errors. */
function rowsText({ rows_with_errors, rows }: Verdict): string {
  const all = counted(rows, 'row');
  return rows_with_errors === 0 || rows === 1 ? all : `${grouped(rows_with_errors)} of ${all}`;
}

function groupText({ column, expected, count, lines, value }: ErrorGroup): string {
  const shown = `${lines.length === 1 ? 'line' : 'lines'} ${lines.join(', ')}${count > lines.length ? ', …' : ''}`;
  const found = value === null ? '' : `, found ${count > 1 ? 'for example ' : ''}${JSON.stringify(value)}`;
  const where = count > 1 ? `${counted(count, 'time')}, ${shown}` : shown;
  return `  ${column === null ? '' : `${column}: `}expected ${expected}${found} (${where})`;
}

/** An ignored column may be a misspelt one. */
function withSuggestion(name: string): string {
  const column = nearest(name, COLUMN_NAMES, 3);
  return column === null ? name : `${name} (did you mean ${column}?)`;
}

function explanationText(explanation: Explanation): string {
  const { effect, history, unknown_rows, window_status } = explanation;
  const unknown = Object.entries(unknown_rows).map(
    ([stream, rows]) =>
      `  skipped: ${counted(rows, 'row')} of ${stream}, because there is no such subscription or content type`,
  );
  const isUnread = history.length > 0 && explanation.rows === 0 && explanation.errors_total === 0;
  return joined('\n', [
    explanation.file,
    !isUnread && verdictText(explanation),
    `If dropped now, ${explanation.when_dropped}.`,
    window_status !== null && `Window status: ${window_status}`,
    explanation.advice,
    effect !== null &&
      `effect: ${grouped(effect.created)} created, ${grouped(effect.updated)} updated, ${grouped(effect.rescored)} re-scored, ${grouped(effect.unchanged)} unchanged${effect.rows < explanation.rows - sumOf(unknown_rows) ? ` (of the first ${counted(effect.rows, 'row')})` : ''}`,
    ...unknown,
    history.length > 0 && `\nearlier files with this name:\n${fileTable(history)}`,
  ]);
}

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
