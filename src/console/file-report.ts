/** One export file: what became of it, of its rows, and why some or all were left out. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { FileEntry, FileOutcome, FileReport } from '../admin/console/api.ts';
import { bytes, count } from './format.ts';
import { Foreign, type MarkName, State, Table, When } from './parts.ts';

const OUTCOMES: Readonly<Record<FileOutcome, readonly [MarkName, string]>> = {
  applied: ['done', 'applied'],
  applying: ['held', 'being applied'],
  repeated: ['done', 'repeated: nothing new'],
  failed: ['failed', 'failed'],
  refused: ['warning', 'refused'],
  held: ['held', 'held'],
};

export function Outcome({ of }: { of: FileOutcome }): VNode {
  const [mark, text] = OUTCOMES[of];
  return html`<${State} name=${mark}>${text}</${State}>`;
}

/** `40 rows: 38 created, 2 updated` */
export function rowsText(report: FileReport): string {
  const { rows } = report;
  if (rows === undefined) return '';
  const parts = (['created', 'updated', 'rescored', 'unchanged'] as const).flatMap((name) => {
    const value = report[name] ?? 0;
    return value === 0 ? [] : [`${count(value)} ${name}`];
  });
  return [count(rows, 'row'), ...(parts.length === 0 ? [] : [parts.join(', ')])].join(': ');
}

/** What was left out, and why; empty when nothing was. */
export function leftOut({
  bad_rows = 0,
  unknown_rows = {},
  ignored_columns = [],
  names_without_id = 0,
}: FileReport): string[] {
  const unknown = Object.entries(unknown_rows).map(
    ([stream, rows]) => `${count(rows, 'row')} left out: there is no subscription for ${stream}`,
  );
  return [
    ...(bad_rows === 0 ? [] : [`${count(bad_rows, 'row')} left out: not in the export format`]),
    ...unknown,
    ...(ignored_columns.length === 0 ? [] : [`columns ignored: ${ignored_columns.join(', ')}`]),
    ...(names_without_id === 0 ? [] : [`${count(names_without_id, 'publisher name')} without an id ignored`]),
  ];
}

export function FileStory({ file }: { file: FileEntry }): VNode {
  const { report } = file;
  const out = leftOut(report);
  return html`<article class="story">
    <p><${Outcome} of=${file.outcome} /> <${Foreign} text=${file.file} class="mono" /></p>
    ${report.reason !== undefined && html`<p class="reason"><${Foreign} text=${report.reason} /></p>`}
    <p class="soft">Taken <${When} at=${file.taken_at} /> UTC${file.finished_at !== null && html`, finished <${When} at=${file.finished_at} /> UTC`}; ${bytes(file.bytes)}${report.rows !== undefined && `; ${rowsText(report)}`}</p>
    ${out.length > 0 && html`<ul class="left-out">${out.map((line) => html`<li><${Foreign} text=${line} /></li>`)}</ul>`}
    ${file.destination !== null && html`<p class="soft">Now at <${Foreign} text=${file.destination} class="mono" /></p>`}
    <${Errors} report=${report} />
  </article>`;
}

/** `line 1, strength_score: expected a number from 0 to 100, found "high"; 5 more errors`; null: there is none. */
export function firstError({ errors = [], errors_total = errors.length }: FileReport): string | null {
  const [first] = errors;
  if (first === undefined) return null;
  const where = first.column === null ? `line ${first.line}` : `line ${first.line}, ${first.column}`;
  const more = errors_total > 1 ? `; ${count(errors_total - 1, 'more error', 'more errors')}` : '';
  return `${where}: expected ${first.expected}, found ${shown(first.value)}${more}`;
}

type FileError = NonNullable<FileReport['errors']>[number];

function Errors({ report }: { report: FileReport }): VNode | null {
  const { errors = [], errors_total = errors.length } = report;
  if (errors.length === 0) return null;
  const columns = [
    { title: 'Line', isNumber: true, of: ({ line }: FileError) => count(line) },
    {
      title: 'Column',
      class: 'medium',
      of: ({ column }: FileError) => html`<${Foreign} text=${column ?? 'whole line'} class="mono" />`,
    },
    {
      title: 'Value',
      of: ({ value }: FileError) => html`<${Foreign} text=${shown(value)} class="mono" />`,
      class: 'wide',
    },
    {
      title: 'Expected',
      of: ({ expected }: FileError) => html`<${Foreign} text=${expected} />`,
      class: 'wide',
    },
  ];
  return html`<${Table} label="Errors" columns=${columns} rows=${errors} keyOf=${(one: FileError) => `${one.line} ${one.column}`} />
    ${errors_total > errors.length && html`<p class="soft">The first ${count(errors.length)} of ${count(errors_total, 'error')}.</p>`}`;
}

const VALUE_MAX = 200;

/** A value of a file or of a log, as JSON has it. */
export function shown(value: unknown): string {
  const text = value === undefined ? '(absent)' : (JSON.stringify(value) ?? '');
  return text.length > VALUE_MAX ? `${text.slice(0, VALUE_MAX)}…` : text;
}
