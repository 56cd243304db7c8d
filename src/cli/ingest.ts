/** `wirewatch ingest validate` and `ingest explain`: what a file contains, and what it would change. */
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { exportShapes } from '../config/export-settings.ts';
import { type Config, dropNames, holdRules } from '../config/load.ts';
import { read } from '../config/option-values.ts';
import { counted, grouped } from '../counted.ts';
import { IGNORED, snapshotIn } from '../drop/drop-folder.ts';
import { type ExportFileName, endText, formOf, switchedOff, windowReadiness } from '../exports/file-name.ts';
import { fileDocument, filesNamed, findSameContent } from '../ingest/files/file-record.ts';
import { readPause } from '../ingest/operator-pause.ts';
import type { ReadingRules } from '../ingest/reading/dry-run.ts';
import type { ReadingResult } from '../ingest/reading/read-export.ts';
import { readSubscribers } from '../ingest/threads/access-connection.ts';
import { list, required } from '../operations/member.ts';
import { fileTable } from '../operations/status-views.ts';
import { failed, reasonOf } from '../refused.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { type DataFolder, dataFolder, statsOf } from '../store/folder.ts';
import { readRole, roleOf } from '../store/role.ts';
import { joined } from '../text-layout.ts';
import { findWindow } from '../windows/ledger.ts';
import { arrival, isHistory, type WindowStatus } from '../windows/window-states.ts';
import { subcommand } from './command.ts';
import { configOf, requireInstallation } from './installation.ts';
import { operationGroup } from './operation-command.ts';
import { DROP_OPTION } from './options.ts';
import { type Result, showProgress } from './output.ts';
import { type Verdict, verdictOf, verdictText } from './verdict.ts';

const FILES = { placeholder: 'file', several: 'repeated' } as const;

const validate = subcommand(
  'validate',
  'check files against the export format, exactly as Wirewatch does. Changes nothing. Exit code 1 if a file is not valid',
  {
    members: { file: required(list(read, { hint: 'path of an export file', ...FILES })) },
    operands: ['file'],
    examples: ['ingest validate newswire.20261121T1010Z.ndjson.gz', 'ingest validate exports/*'],
    run({ file: files }, self) {
      // All before the first, which may take long.
      files.forEach(requireFile);
      return resultOf(
        files,
        (file) => validateFile(file, configOf(self)),
        (verdict) => joined('\n', [files.length > 1 && verdict.file, verdictText(verdict)]),
        ({ valid }) => !valid,
      );
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
    run: ({ file: files }, self) =>
      resultOf(
        files,
        (file) => explainFile(file, configOf(self)),
        explanationText,
        // A file that no longer exists is not invalid.
        ({ valid, file }) => !valid && existsSync(file),
      ),
  },
);

/** One after the other: each may be long, and shows its progress. The document of one file, or a list for several. */
async function resultOf<One>(
  files: readonly string[],
  work: (file: string) => Promise<One>,
  textOf: (result: One) => string,
  isFailed: (result: One) => boolean,
): Promise<Result> {
  const all: One[] = [];
  for (const file of files) all.push(await work(file));
  const value = all.length === 1 ? all[0] : all;
  return { value, text: all.map(textOf).join('\n\n'), failed: all.some(isFailed) };
}

export const register = operationGroup('ingest', validate, explain);

/** @param name under which the file was dropped, or would be */
async function validateFile(path: string, config: Config, name = basename(path)): Promise<Verdict> {
  const checked = dropNames(config).parse(name);
  if (checked.kind !== 'export') {
    const unread =
      checked.kind === 'refused' ? checked.reason : 'the name marks a file that is still being written';
    return verdictOf(path, null, null, { unread });
  }
  const { file } = checked;
  const { checkExport, FirstRows } = await import('../ingest/reading/dry-run.ts');
  const rules = { ...rulesOf(config, file), bad_rows: 'fail' } as const;
  const onProgress = (rows: number) => showProgress(file.name, rows);
  const first = new FirstRows();
  const result = await checkExport(path, file, rules, { onProgress, onRow: first.add });
  return verdictOf(path, file, result, { mapped: rules.mapping !== null, first_rows: first.rows });
}

type Explanation = Awaited<ReturnType<typeof explainFile>>;

async function explainFile(fileOrName: string, config: Config) {
  const folder = dataFolder(config.dataFolder);
  requireInstallation(folder);
  using db = existsSync(folder.detections) ? openDatabase(folder.detections, 'read') : null;
  using access = existsSync(folder.access) ? openDatabase(folder.access, 'read') : null;
  const { root: drop, parse } = dropNames(config);
  const name = basename(fileOrName);
  const history = db === null ? [] : filesNamed(db, name).map(fileDocument);
  // By its name alone, the file that waits comes before those that were read.
  const inDrop = [...(name === fileOrName ? [name] : []), ...history.map(({ destination }) => destination)];
  const paths = inDrop.flatMap((own) => (own === null ? [] : join(drop, own)));
  const path = [fileOrName, ...paths].find((own) => existsSync(own)) ?? null;
  const checked = parse(name);
  const file = checked.kind === 'export' ? checked.file : null;
  const isIgnored =
    path !== null && dirname(resolve(path)) === resolve(drop) && snapshotIn(drop, name) === 'ignored';
  if (path === null ? history.length === 0 : !isIgnored) requireFile(path ?? fileOrName);
  const verdict =
    path === null || isIgnored
      ? verdictOf(path ?? fileOrName, file, null, { unread: isIgnored ? IGNORED : null })
      : await validateFile(path, config, name);
  const unread = (when_dropped: string) => ({
    ...verdict,
    /** What happens to the file if it is dropped now. */
    when_dropped,
    window_status: null,
    /** What to do instead, if the file would do something that is seldom intended; else null. */
    advice: null,
    /** The number of an earlier file with the same content. */
    same_content_as: null,
    /** Rows of subscriptions or content types that do not exist. */
    unknown_rows: {},
    /** What its rows would change now; null if the file would not be applied. */
    effect: null,
    /** Files that were dropped earlier with this name, and their outcome, the newest first. */
    history,
  });
  if (isIgnored) return unread('it would stay where it is, and never be read');
  if (path === null)
    return unread('nothing would happen: the file is no longer there, and only its history is known');
  if (checked.kind === 'refused') return unread('it would be refused, because of its name');
  if (file === null) return unread('it would be ignored until it has its final name');
  const { effect, result } = await effectOf(path, file, config, { access, db });
  const { sha256, unknown_rows, urls_withheld } = result.counts;
  const { mapping } = rulesOf(config, file);
  const same = db === null ? null : findSameContent(db, { ...file, sha256, mapping });
  const start = file.window_start;
  const status = (db && start !== null && findWindow(db, file.export, start)?.status) || null;
  const advice = `its window ended more than 90 days ago. Drop old data as a backfill: rename the file to ${file.export}.backfill-LABEL.${formOf(file.name)}`;
  return {
    ...unread(
      `it would ${heldBack(config, folder, access)}${whenDropped(file, config, result, status, same)}`,
    ),
    // The accounts of the installation are known here.
    urls_withheld,
    window_status: status,
    advice: start !== null && isHistory(start, Date.now()) ? advice : null,
    same_content_as: same,
    unknown_rows,
    effect: result.kind === 'read' ? effect : null,
  };
}

/** Reads the file once more, with the existing streams, and counts what it would change. */
async function effectOf(
  path: string,
  file: ExportFileName,
  config: Config,
  { access, db }: Readonly<Record<'access' | 'db', Database | null>>,
) {
  const { checkExport, effectCounter } = await import('../ingest/reading/dry-run.ts');
  const { enabled_exports } = holdRules(config);
  const subscribers =
    access === null ? { streams: [], licensed: [] } : readSubscribers(access, enabled_exports);
  const counter = effectCounter(db, new Set(subscribers.licensed));
  const rules = { ...rulesOf(config, file), ...subscribers };
  const result = await checkExport(path, file, rules, { onBatch: counter.add });
  return { effect: counter.effect, result };
}

/** Why every file stays where it is; '': it does not. */
function heldBack({ copy }: Config, folder: DataFolder, access: Database | null): string {
  if (roleOf(readRole(folder), copy) !== 'writer')
    return 'stay where it is until this machine is the writer, and then ';
  if (access === null || readPause(access) === null) return '';
  return 'stay where it is until "wirewatch ingest resume", and then ';
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
  const { require_trailer, bad_rows } = config.ingest;
  const mapping = exportShapes(config).mappings[file.export];
  return { mapping, earliest: config.earliestTime, require_trailer, bad_rows };
}

/** @throws Refused `failed` if it is no file, or this user may not read it */
function requireFile(path: string): void {
  if (statsOf(path, statSync)?.isDirectory())
    throw failed(`${path} is a folder. Give the path of an export file.`);
  try {
    accessSync(path, constants.R_OK);
  } catch (error) {
    throw failed(
      `cannot read ${path}: ${reasonOf(error, path)}. Give the path of an export file, and run the command as the user that Wirewatch runs as.`,
    );
  }
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
