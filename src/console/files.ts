/** Every export file, newest first: what became of it and why. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { Action, FileEntry, FilesPage } from '../admin/console/api.ts';
import { ActionButton } from './action.ts';
import { FileStory, firstError, leftOut, Outcome, rowsText } from './file-report.ts';
import { bytes, windowTime } from './format.ts';
import { Filters, Pages, usePages, valuesOf } from './list.ts';
import { Age, Foreign, Heading, Panel, Table } from './parts.ts';
import { linkTo, queryOf, type Route } from './route.ts';
import { useIsReadOnly } from './session.ts';

const FIELDS = [
  { name: 'name', label: 'Name contains' },
  {
    name: 'outcome',
    label: 'Outcome',
    options: [
      ['', 'any'],
      ['failed,held,refused', 'failed, held or refused'],
      ['applied', 'applied'],
      ['applying', 'being applied'],
      ['repeated', 'repeated'],
      ['failed', 'failed'],
      ['held', 'held'],
      ['refused', 'refused'],
    ],
  },
  {
    name: 'export',
    label: 'Export',
    options: [
      ['', 'both'],
      ['newswire', 'newswire'],
      ['imagewire', 'imagewire'],
    ],
  },
] as const;

export function Files({ route }: { route: Route }): VNode {
  const pages = usePages<FilesPage>(`/console/files${queryOf(valuesOf(FIELDS, route))}`, ['windows']);
  const isReadOnly = useIsReadOnly();
  return html`<${Heading}>Files</${Heading}>
    <${Panel} title="Export files" help="operations" aside=${!isReadOnly && html`<${ReplayButton} />`}>
      <${Filters} fields=${FIELDS} route=${route} />
      <${Pages} of=${pages}>${(all: readonly FilesPage[]) => html`<${FileTable} files=${all.flatMap(({ files }) => files)} />`}</${Pages}>
    </${Panel}>`;
}

function FileTable({ files }: { files: readonly FileEntry[] }): VNode {
  const columns = [
    { title: 'File', class: 'wide', of: (one: FileEntry) => html`<${Summary} file=${one} />` },
    { title: 'Outcome', of: ({ outcome }: FileEntry) => html`<${Outcome} of=${outcome} />` },
    { title: 'Window (UTC)', of: windowOf },
    {
      title: 'Rows',
      class: 'medium',
      of: ({ report }: FileEntry) => rowsText(report) || html`<span class="soft">–</span>`,
    },
    { title: 'Size', isNumber: true, of: (one: FileEntry) => bytes(one.bytes) },
    { title: 'Taken', of: ({ taken_at }: FileEntry) => html`<${Age} at=${taken_at} />` },
  ];
  return html`<${Table} label="Export files" columns=${columns} rows=${files} keyOf=${(one: FileEntry) => one.number} empty="No such file." />`;
}

/** The name, and in full where somebody should read it why; the rest behind a click. */
function Summary({ file }: { file: FileEntry }): VNode {
  const { reason } = file.report;
  const lines = [reason, firstError(file.report), ...leftOut(file.report)].filter(
    (line) => line !== undefined && line !== null,
  );
  return html`<details class="file"><summary><${Foreign} text=${file.file} class="mono" />
      ${lines.map((line) => html`<${Foreign} text=${line} class="reason" />`)}</summary>
    <${FileStory} file=${file} /></details>`;
}

function windowOf({ export: exportName, window_start, label }: FileEntry) {
  if (exportName === null || window_start === null) return label === null ? '–' : `backfill ${label}`;
  return html`<a href=${linkTo('windows', { export: exportName, window: window_start })}>${windowTime(Date.parse(window_start))}</a>`;
}

function ReplayButton(): VNode {
  const fields = html`<div class="fields">
    <label>First applied from (UTC)<input type="datetime-local" name="from" /></label>
    <label>before (UTC)<input type="datetime-local" name="to" /></label>
  </div><p class="soft">Without either, every archived file is read.</p>`;
  const complete = (form: FormData): Action => {
    const end = (name: string) => (form.get(name) ? `${form.get(name)}:00Z` : undefined);
    const [from, to] = [end('from'), end('to')];
    return { kind: 'ingest-replay', ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
  };
  return html`<${ActionButton} action=${{ kind: 'ingest-replay' }} fields=${fields} complete=${complete} />`;
}
