/** `wirewatch ingest validate` and `ingest explain`: what a file contains, and what it would change. */
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { exportShapes } from '../config/export-settings.ts';
import { type Config, dropNames, holdRules } from '../config/load.ts';
import { read } from '../config/option-values.ts';
import { counted, grouped } from '../counted.ts';
import { IGNORED, snapshotIn } from '../drop/drop-folder.ts';
import { type ExportFileName, endText, formOf, switchedOff, windowReadiness } from '../exports/file-name.ts';
import { type FileDocument, fileDocument, filesNamed, findSameContent } from '../ingest/files/file-record.ts';
import { readPause } from '../ingest/operator-pause.ts';
import type { Effect, ReadingRules } from '../ingest/reading/dry-run.ts';
import type { ReadingResult } from '../ingest/reading/read-export.ts';
import { readSubscribers, type Subscribers } from '../ingest/threads/access-connection.ts';
import { list, required } from '../operations/member.ts';
import { fileTable } from '../operations/status-views.ts';
import { failed, isErrorCode } from '../refused.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { readRole, roleOf } from '../store/role.ts';
import { joined } from '../text-layout.ts';
import { findWindow } from '../windows/ledger.ts';
import { arrival, isHistory, type WindowStatus } from '../windows/window-states.ts';
import { type Result, subcommand } from './command.ts';
import { configOf, folderOf, requireInstallation } from './installation.ts';
import { operationGroup } from './operation-command.ts';
import { DROP_OPTION } from './options.ts';
import { createProgress } from './output.ts';
import { type Verdict, verdictOf, verdictText } from './verdict.ts';

const FILES = { placeholder: 'file', several: 'repeated' } as const;

const validate = subcommand(
  'validate',
  'check files against the export format, exactly as Wirewatch does. Changes nothing. Exit code 1 if a file is not valid',
  {
    members: { file: required(list(read, { hint: 'path of an export file', ...FILES })) },
    operands: ['file'],
    examples: ['ingest validate newswire.20261121T1010Z.ndjson.gz', 'ingest validate exports/*'],
    async run({ file: files }, self) {
      const verdicts = await inTurn(files, (file) => validateFile(file, configOf(self)));
      const textOf = (verdict: Verdict) =>
        joined('\n', [verdicts.length > 1 && verdict.file, verdictText(verdict)]);
      return resultOf(verdicts, textOf, ({ valid }) => !valid);
    },
  },
);

const explain = subcommand(
  'explain',
  'show what Wirewatch would do with files: their windows, their rows and what they would change, and what happened to earlier files with their names. Exit code 1 if a file is not valid',
  {
    members: {
      file: required(
        list(read, { hint: 'path of an export file, or the name of one that was dropped earlier', ...FILES }),
      ),
    },
    operands: ['file'],
    options: [DROP_OPTION],
    examples: [
      'ingest explain /srv/exports/newswire.20261121T1010Z.ndjson.gz',
      'ingest explain newswire.20261121T1010Z.ndjson.gz --json',
    ],
    async run({ file: files }, self) {
      const explanations = await inTurn(files, (file) => explainFile(file, configOf(self)));
      // A file that no longer exists is not invalid.
      return resultOf(explanations, explanationText, ({ valid, file }) => !valid && existsSync(file));
    },
  },
);

/** The result is the document of one file, or a list for several. */
function resultOf<One>(
  all: readonly One[],
  textOf: (result: One) => string,
  isFailed: (result: One) => boolean,
): Result {
  const value = all.length === 1 ? all[0] : all;
  return { value, text: () => all.map(textOf).join('\n\n'), failed: all.some(isFailed) };
}

/** One after the other: each may be long, and shows its progress. */
async function inTurn<One>(files: readonly string[], work: (file: string) => Promise<One>): Promise<One[]> {
  const all: One[] = [];
  for (const file of files) all.push(await work(file));
  return all;
}

export const register = operationGroup('ingest', validate, explain);

/** @param name under which the file was dropped, or would be */
async function validateFile(path: string, config: Config, name = basename(path)): Promise<Verdict> {
  requireFile(path);
  const checked = dropNames(config).parse(name);
  if (checked.kind !== 'export') {
    const unread =
      checked.kind === 'refused' ? checked.reason : 'the name marks a file that is still being written';
    return verdictOf(path, null, null, { unread });
  }
  const { file } = checked;
  const { checkExport, FirstRows } = await import('../ingest/reading/dry-run.ts');
  const rules = { ...rulesOf(config, file), bad_rows: 'fail' } as const;
  using progress = createProgress();
  const onProgress = (rows: number) => progress.update(file.name, rows);
  const first = new FirstRows();
  const sinks = { onProgress, onRow: first.add };
  const result = await nullOfPermission(checkExport(path, file, rules, sinks));
  if (result === null) return verdictOf(path, file, null, { unread: NO_PERMISSION });
  return verdictOf(path, file, result, { mapped: rules.mapping !== null, first_rows: first.rows });
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
  requireInstallation(config);
  const { detections } = folderOf(config);
  using db = existsSync(detections) ? openDatabase(detections, 'read') : null;
  const name = basename(fileOrName);
  const history = db === null ? [] : filesNamed(db, name).map(fileDocument);
  const dropped = history.flatMap(({ destination }) => destination ?? []);
  // By its name alone, the file that waits comes before those that were read.
  const inDrop = [...(name === fileOrName ? [name] : []), ...dropped].map((own) =>
    join(config.ingest.drop, own),
  );
  const path = [fileOrName, ...inDrop].find((own) => existsSync(own)) ?? null;
  const checked = dropNames(config).parse(name);
  const file = checked.kind === 'export' ? checked.file : null;
  if (path === null && history.length === 0) requireFile(fileOrName);
  const { drop } = config.ingest;
  const isIgnored =
    path !== null && dirname(resolve(path)) === resolve(drop) && snapshotIn(drop, name) === 'ignored';
  const verdict =
    path === null || isIgnored
      ? verdictOf(path ?? fileOrName, file, null, { unread: isIgnored ? IGNORED : null })
      : await validateFile(path, config, name);
  const unread = (when_dropped: string): Explanation => ({
    ...verdict,
    when_dropped,
    window_status: null,
    advice: null,
    same_content_as: null,
    unknown_rows: {},
    effect: null,
    history,
  });
  if (isIgnored) return unread('it would stay where it is, and never be read');
  if (path === null)
    return unread('nothing would happen: the file is no longer there, and only its history is known');
  if (checked.kind === 'refused') return unread('it would be refused, because of its name');
  if (file === null) return unread('it would be ignored until it has its final name');
  const read = await nullOfPermission(effectOf(path, file, config, db));
  if (read === null) return unread('Wirewatch would read it as soon as it has the permission');
  const { effect, result } = read;
  const { sha256, unknown_rows, urls_withheld } = result.counts;
  const { mapping } = rulesOf(config, file);
  const same = db === null ? null : findSameContent(db, file, { sha256, mapping });
  const start = file.window_start;
  const status = (db && start !== null && findWindow(db, file.export, start)?.status) || null;
  const advice = `its window ended more than 90 days ago. Drop old data as a backfill: rename the file to ${file.export}.backfill-LABEL.${formOf(file.name)}`;
  return {
    ...unread(`it would ${heldBack(config)}${whenDropped(file, config, result, status, same)}`),
    // The accounts of the installation are known here.
    urls_withheld,
    window_status: status,
    advice: start !== null && isHistory(start, Date.now()) ? advice : null,
    same_content_as: same,
    unknown_rows,
    effect: result.kind === 'read' ? effect : null,
  };
}

/** Reads the file once more, with the existing streams, and counts what it would change. @param db null: there is none */
async function effectOf(path: string, file: ExportFileName, config: Config, db: Database | null) {
  const { checkExport, effectCounter } = await import('../ingest/reading/dry-run.ts');
  const subscribers = subscribersOf(config);
  const counter = effectCounter(db, new Set(subscribers.licensed));
  const rules = { ...rulesOf(config, file), ...subscribers };
  const result = await checkExport(path, file, rules, { onBatch: counter.add });
  return { effect: counter.effect, result };
}

function subscribersOf(config: Config): Subscribers {
  const { access } = folderOf(config);
  if (!existsSync(access)) return { streams: [], licensed: [] };
  using db = openDatabase(access, 'read');
  return readSubscribers(db, holdRules(config).enabled_exports);
}

/** Why every file stays where it is; '': it does not. */
function heldBack(config: Config): string {
  const folder = folderOf(config);
  if (roleOf(readRole(folder), config.copy) !== 'writer')
    return 'stay where it is until this machine is the writer, and then ';
  if (!existsSync(folder.access)) return '';
  using db = openDatabase(folder.access, 'read');
  return readPause(db) === null ? '' : 'stay where it is until "wirewatch ingest resume", and then ';
}

/**
 * @param status of the window of the file @param same the number of a file with the same content
 * @returns what goes on after `it would`
 */
function whenDropped(
  file: ExportFileName,
  config: Config,
  result: ReadingResult,
  status: WindowStatus | null,
  same: number | null,
): string {
  const off = config.exports[file.export].enabled ? null : `be refused: ${switchedOff(file.export)}`;
  if (file.window_start !== null) {
    const due = windowReadiness(file.window_start, Date.now());
    if (due === 'too far ahead') return 'be refused, because its window is more than a day in the future';
    if (due === 'early')
      return `stay where it is until its window has ended, until ${endText(file.window_start)}, and then ${off ?? 'be read'}`;
  }
  if (off !== null) return off;
  if (arrival(status ?? undefined, config.ingest.failed_windows) === 'hold')
    return `be held, because its window is ${status}`;
  if (result.kind === 'truncated')
    return 'fail unless it is still being written, because its compressed data is truncated';
  if (result.kind !== 'read') return 'fail, and none of its rows would be applied';
  if (same !== null) return `change nothing, because file number ${same} had the same content`;
  return result.counts.bad_rows === 0 ? 'be applied' : 'be applied, without its bad rows';
}

function rulesOf(config: Config, file: ExportFileName): ReadingRules {
  return {
    mapping: exportShapes(config).mappings[file.export],
    earliest: config.earliestTime,
    require_trailer: config.ingest.require_trailer,
    bad_rows: config.ingest.bad_rows,
  };
}

const NO_PERMISSION =
  'no permission to read the file: run the command as the user that Wirewatch runs as, and give that user the permission';

/** Null: this user may not read the file. */
async function nullOfPermission<Read>(reading: Promise<Read>): Promise<Read | null> {
  try {
    return await reading;
  } catch (error) {
    if (isErrorCode(error, 'EACCES', 'EPERM')) return null;
    throw error;
  }
}

function requireFile(path: string): void {
  const isThere = existsSync(path);
  if (isThere && !statSync(path).isDirectory()) return;
  const problem = isThere ? `${path} is a folder` : `there is no file ${path}`;
  throw failed(`${problem}. Give the path of an export file.`);
}

function explanationText(explanation: Explanation): string {
  const { effect, history, unknown_rows, window_status } = explanation;
  const unknown = Object.entries(unknown_rows).map(
    ([stream, rows]) =>
      `  skipped: ${counted(rows, 'row')} of ${stream}, because there is no such subscription or content type`,
  );
  const left = Object.values(unknown_rows).reduce((sum, rows) => sum + rows, explanation.rows_with_errors);
  const { valid, reason, errors_total } = explanation;
  const isUnread = !valid && reason === null && errors_total === 0;
  return joined('\n', [
    explanation.file,
    !isUnread && verdictText(explanation),
    `If dropped now, ${explanation.when_dropped}.`,
    window_status !== null && `Window status: ${window_status}`,
    explanation.advice,
    effect !== null &&
      `effect: ${grouped(effect.created)} created, ${grouped(effect.updated)} updated, ${grouped(effect.rescored)} re-scored, ${grouped(effect.unchanged)} unchanged${effect.rows < explanation.rows - left ? ` (of the first ${counted(effect.rows, 'row')})` : ''}`,
    ...unknown,
    history.length > 0 && `\nearlier files with this name:\n${fileTable(history)}`,
  ]);
}
