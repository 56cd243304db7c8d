/** Every export file, the newest first: its outcome, its rows, and why some or all were left out. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { FileEntry, FileOutcome, FileReport, FilesPage } from '../admin/console/api.ts';
import { counted, grouped } from '../counted.ts';
import { EXPORT_NAMES, type ExportName } from '../detection/content-type.ts';
import { columnText, firstErrorText } from '../exports/error-groups.ts';
import { actionButton } from './action.ts';
import { bytes, windowTime } from './format.ts';
import { choices, useList } from './forms.ts';
import { age, type Children, foreign, type MarkName, soft, state, value, when } from './inline.ts';
import { table } from './parts.ts';
import { linkTo, type Route } from './route.ts';

const OUTCOMES: Readonly<Record<FileOutcome, readonly [MarkName, string]>> = {
  applied: ['done', 'applied'],
  applying: ['held', 'being applied'],
  repeated: ['done', 'repeated: nothing new'],
  failed: ['failed', 'failed'],
  refused: ['warning', 'refused'],
};

const outcome = (kind: FileOutcome) => state(...OUTCOMES[kind]);

export function Files({ route }: { route: Route }): VNode {
  const [opened, setOpened] = useState<number | null>(null);
  const toggle = ({ number }: FileEntry) => setOpened(opened === number ? null : number);
  const single = Object.entries(OUTCOMES).map(([name, [, text]]) => [name, text] as const);
  const outcomes = choices('any', [['failed,refused', 'failed or refused'], ...single]);
  return useList<FilesPage, FileEntry>({
    label: 'Export files',
    help: 'operations',
    aside: actionButton({ operation: 'ingest replay', given: {} }),
    path: '/console/files',
    topics: ['windows'],
    route,
    fields: [
      { name: 'name', label: 'Name contains' },
      { name: 'outcome', label: 'Outcome', options: outcomes },
      { name: 'export', label: 'Export', options: choices('both', EXPORT_NAMES) },
    ],
    rowsOf: ({ files }) => files,
    columns: [
      ['File', (file) => summary(file, opened === file.number, () => toggle(file)), 'wide'],
      ['Outcome', (file) => outcome(file.outcome)],
      ['Window (UTC)', windowOf],
      ['Rows', ({ report }) => rowsText(report) || soft('–'), 'medium'],
      ['Size', (file) => bytes(file.bytes), 'number'],
      ['Taken', ({ taken_at }) => age(taken_at)],
    ],
    key: ({ number }) => number,
    below: (file) => (opened === file.number ? fileStory(file) : null),
    empty: 'No such file.',
  });
}

/** The name, with the reason if it was not applied completely; the rest opens below the row with a click. */
function summary(file: FileEntry, isOpen: boolean, onClick: () => void): VNode {
  const lines = [file.report.reason, firstErrorText(file.report), ...leftOut(file.report)].filter(Boolean);
  return html`<button type="button" class="plain file" aria-expanded=${isOpen} onClick=${onClick}>${foreign(file.file, 'mono')}</button>
    ${lines.map((line) => foreign(line, 'reason'))}`;
}

function windowOf({ export: exportName, window_start, label }: FileEntry): Children {
  if (exportName !== null && window_start !== null) return windowLink(exportName, window_start);
  return label === null ? '–' : `backfill ${label}`;
}

export const windowLink = (name: ExportName, start: string): VNode =>
  html`<a href=${linkTo('windows', { export: name, window: start })}>${windowTime(Date.parse(start))}</a>`;

/** `40 rows: 38 created, 2 updated` */
function rowsText(report: FileReport): string {
  if (report.rows === undefined) return '';
  const names = ['created', 'updated', 'rescored', 'unchanged'] as const;
  const parts = names.filter((name) => report[name]).map((name) => `${grouped(report[name] ?? 0)} ${name}`);
  return [counted(report.rows, 'row'), parts.join(', ')].filter(Boolean).join(': ');
}

function leftOut(report: FileReport): string[] {
  const { bad_rows = 0, unknown_rows = {}, urls_withheld = 0 } = report;
  const { ignored_columns = [], names_without_id = 0 } = report;
  return [
    bad_rows > 0 ? `${counted(bad_rows, 'row')} left out: not in the export format` : '',
    ...Object.entries(unknown_rows).map(
      ([stream, rows]) => `${counted(rows, 'row')} left out: there is no subscription for ${stream}`,
    ),
    ignored_columns.length > 0 ? `columns ignored: ${ignored_columns.join(', ')}` : '',
    names_without_id > 0 ? `${counted(names_without_id, 'publisher name')} without an id ignored` : '',
    urls_withheld > 0
      ? `${counted(urls_withheld, 'row')} of print articles without article.url: no licence`
      : '',
  ].filter(Boolean);
}

export function fileStory(file: FileEntry): VNode {
  const { report, finished_at, destination } = file;
  const finished = finished_at !== null && html`, finished ${when(finished_at)} UTC`;
  return html`<article class="story" key=${file.number}>
    <p>${outcome(file.outcome)} ${foreign(file.file, 'mono')}</p>
    ${[report.reason ?? '', ...leftOut(report)].map((line) => line && html`<p>${foreign(line, 'reason')}</p>`)}
    <p class="soft">Taken ${when(file.taken_at)} UTC${finished}; ${bytes(file.bytes)}${report.rows !== undefined && `; ${rowsText(report)}`}</p>
    ${destination !== null && html`<p class="soft">Now at ${foreign(destination, 'mono')}</p>`}
    ${errors(report)}
  </article>`;
}

function errors({ errors = [], errors_total = errors.length }: FileReport): Children {
  if (errors.length === 0) return null;
  const rows = table(
    { label: 'Errors', rows: errors },
    ['Line', ({ line }) => grouped(line), 'number'],
    ['Column', (column) => foreign(columnText(column) ?? 'whole line', 'mono'), 'medium'],
    ['Value', ({ value: read, value_in_file = read }) => value(value_in_file), 'wide'],
    ['Expected', ({ expected }) => foreign(expected), 'wide'],
  );
  const total = `The first ${grouped(errors.length)} of ${counted(errors_total, 'error')}.`;
  return [rows, errors_total > errors.length && html`<p class="soft">${total}</p>`];
}
