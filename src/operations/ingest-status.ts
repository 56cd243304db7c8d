/** The state of ingest, and how it is shown. */

import { Type } from '@sinclair/typebox';
import { enabledExports } from '../config/load.ts';
import { integer } from '../config/option-values.ts';
import { counted, grouped } from '../counted.ts';
import { EXPORT_NAMES } from '../detection/content-type.ts';
import type { FileDocument } from '../ingest/file-record.ts';
import { type IngestStatus, ingestStatus } from '../ingest/ingest-status.ts';
import { joined, table } from '../text-layout.ts';
import { type Reach, reachText } from '../windows/reach.ts';
import { value } from './member.ts';
import { reading } from './operation.ts';

const FILES_DEFAULT = 10;
const FILES_MAX = 1000;

/** Files in a table, the newest last. */
export function fileTable(files: readonly FileDocument[]): string {
  return table(files.toReversed(), [
    { title: 'NUMBER', value: (file) => file.number, align: 'right' },
    { title: 'FILE', value: (file) => file.file },
    { title: 'OUTCOME', value: (file) => file.outcome },
    { title: 'ROWS', value: (file) => shownCount(file.report.rows), align: 'right' },
    { title: 'CREATED', value: (file) => shownCount(file.report.created), align: 'right' },
    { title: 'UPDATED', value: (file) => shownCount(file.report.updated), align: 'right' },
    { title: 'WHY', value: (file) => file.report.reason },
  ]);
}

function shownCount(count: number | undefined): string | undefined {
  return count === undefined ? undefined : grouped(count);
}

export const INGEST_STATUS = reading('ingest status', {
  summary: 'show whether Wirewatch is running, which files are waiting, and the files processed last',
  members: {
    files: value(integer(0, FILES_MAX), {
      hint: `how many of the last files to show (default: ${FILES_DEFAULT})`,
      placeholder: 'number',
      schema: Type.Integer({ minimum: 0, maximum: FILES_MAX }),
    }),
  },
  examples: ['ingest status', 'ingest status --files 100 --json'],
  readsDrop: true,
  run({ folder, config, access, detections, nowMs }, { files = FILES_DEFAULT }) {
    const enabled = enabledExports(config);
    const sources = {
      folder,
      drop: config.ingest.drop,
      enabled,
      access: access(),
      detections: detections(),
    };
    return { value: ingestStatus(sources, files, nowMs) };
  },
  text: statusText,
});

function waitingText({ waiting, waiting_files }: IngestStatus): string {
  const more = waiting - waiting_files.length;
  const names = [...waiting_files, ...(more > 0 ? [`${grouped(more)} more`] : [])];
  return waiting === 0 ? 'no files' : `${counted(waiting, 'file')}: ${names.join(', ')}`;
}

export const NOT_RUNNING = 'not running; start it with: wirewatch serve';

export function pauseText({ paused_since }: Pick<IngestStatus, 'paused_since'>): string {
  return paused_since === null
    ? 'not paused'
    : `paused since ${paused_since}; resume with: wirewatch ingest resume`;
}

/** How many rows of a backfill have been applied. */
export function applyingText({ file, rows, rows_applied }: IngestStatus['applying'][number]): string {
  return `${file}: ${grouped(rows_applied)} of ${counted(rows, 'row')}`;
}

function statusText(status: IngestStatus): string {
  const newest = (state: { enabled: boolean } & Reach) => (state.enabled ? reachText(state) : 'switched off');
  const lines = [
    `Wirewatch    ${status.running ? 'running' : NOT_RUNNING}`,
    `ingest       ${pauseText(status)}`,
    `drop folder  ${status.drop}`,
    `waiting      ${waitingText(status)}`,
    ...EXPORT_NAMES.map((name) => `${name.padEnd(13)}${newest(status.exports[name])}`),
    status.reading !== null &&
      `reading      ${status.reading.file}: ${counted(status.reading.rows, 'row')} so far`,
    ...status.applying.map((file) => `backfill     ${applyingText(file)}`),
  ];
  const shown = new Set(status.files.map(({ number }) => number));
  const failures = status.not_applied.filter(({ number }) => !shown.has(number));
  return joined('\n\n', [
    joined('\n', lines),
    failures.length > 0 && `Files not applied in the last 24 hours:\n${fileTable(failures)}`,
    status.files.length > 0 && `Files processed last:\n${fileTable(status.files)}`,
  ]);
}
