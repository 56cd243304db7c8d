/** `wirewatch generate`: sample export files of any size, the same for the same arguments. */
import { matching, readWindowStart } from '../config/option-values.ts';
import { CONTENT_TYPES, EXPORT_NAMES } from '../detection/content-type.ts';
import { FORMS } from '../exports/file-name.ts';
import {
  anyText,
  choice,
  list,
  required,
  toggle,
  type ValuesOf,
  value,
  whole,
} from '../operations/member.ts';
import { readKeySubscriptions } from '../operations/members.ts';
import { misused } from '../refused.ts';
import { documentTable } from '../text-layout.ts';
import { formatMs, WINDOW_MS } from '../time.ts';
import { type WrittenFile, writeExportFile } from '../tools/generate/files.ts';
import {
  EARLIEST_START_MS,
  exportRows,
  LATEST_START_MS,
  ROWS_MAX,
  SAMPLE_SUBSCRIPTIONS,
} from '../tools/generate/rows.ts';
import { defineCommand, pathMember } from './command.ts';
import { showProgress } from './output.ts';

/** Two years of windows: more is a typing mistake. */
const WINDOWS_MAX = 105_120;
const BACKFILL_WINDOWS = 4_320;

const LABEL = matching(
  /^[a-z0-9._-]{1,64}$/,
  'a label of 1 to 64 characters: a to z, 0 to 9, dot, underscore or dash',
);

const DEFAULTS = {
  rows: 1000,
  seed: '1',
  export: 'both',
  form: 'ndjson.gz',
  subscriptions: SAMPLE_SUBSCRIPTIONS,
} as const;

const MEMBERS = {
  out: required(pathMember('folder to write to, created if missing; it may be a drop folder in use', 'dir')),
  start: value(readWindowStart, {
    hint: 'start of the first window (default: chosen so that the last window has just ended)',
    placeholder: 'time',
  }),
  windows: whole(
    1,
    WINDOWS_MAX,
    `number of ten-minute windows, with one file per export and window (default: 1; with --backfill, the length of the history: ${BACKFILL_WINDOWS}, which is 30 days)`,
  ),
  rows: whole(0, ROWS_MAX, `rows in each file (default: ${DEFAULTS.rows})`),
  seed: anyText(`seed of the random content: a number or any text (default: ${DEFAULTS.seed})`),
  export: choice([...EXPORT_NAMES, 'both'], {
    hint: 'which export to write',
    placeholder: 'name',
    usual: DEFAULTS.export,
  }),
  form: choice(FORMS, { hint: 'file format and compression', placeholder: 'form', usual: DEFAULTS.form }),
  subscriptions: list(readKeySubscriptions, {
    hint: `subscriptions to write rows for, such as 7001,7002:text (default: ${SAMPLE_SUBSCRIPTIONS.map(({ id }) => id).join(',')})`,
    placeholder: 'list',
  }),
  trailer: toggle('end NDJSON files with a line that gives the number of rows'),
  backfill: value(LABEL, {
    hint: 'instead, write one file of older data (a backfill) per export, with this label in its name',
    placeholder: 'label',
  }),
};

export const register = defineCommand({
  members: MEMBERS,
  examples: [
    'generate --out drop',
    'generate --out samples --windows 6 --rows 50000 --form csv.zst --seed monday',
    'generate --out samples --export newswire --backfill autumn --windows 4320 --rows 1000000',
  ],
  async run(values) {
    const files = plannedFiles(values, Date.now());
    const written: WrittenFile[] = [];
    for (const file of files) {
      written.push(await writeExportFile(values.out, file, exportRows(file)));
      showProgress('files', written.length, files.length);
    }
    return { value: written, text: documentTable(written, ['file', 'export', 'window_start', 'rows']) };
  },
});

/** The files to write, in the order of their windows. @throws Refused `usage` if options contradict each other */
function plannedFiles(values: ValuesOf<typeof MEMBERS>, nowMs: number) {
  const options = { ...DEFAULTS, ...values };
  const { rows, seed, form, trailer = false, backfill } = options;
  // Without a type, a subscription has both.
  const subscriptions = options.subscriptions.map(({ id, content_types: types }) => {
    return { id, content_types: types ?? CONTENT_TYPES };
  });
  const windows = options.windows ?? (backfill === undefined ? 1 : BACKFILL_WINDOWS);
  const firstStartMs = options.start ?? (Math.floor(nowMs / WINDOW_MS) - windows) * WINDOW_MS;
  if (firstStartMs < EARLIEST_START_MS || firstStartMs + windows * WINDOW_MS > LATEST_START_MS) {
    const range = `${formatMs(EARLIEST_START_MS)} and ${formatMs(LATEST_START_MS)}`;
    throw misused(`the windows given by --start and --windows must lie between ${range}`);
  }
  if (trailer && form.startsWith('csv'))
    throw misused(
      `--trailer works only with NDJSON: leave it out, or choose an NDJSON format instead of --form ${form}`,
    );
  const files = backfill === undefined ? windows : 1;
  const content = { seed, windows: windows / files, rows, subscriptions, form, trailer };
  const exportNames = options.export === 'both' ? EXPORT_NAMES : [options.export];
  return Array.from({ length: files }, (_, at) => firstStartMs + at * WINDOW_MS).flatMap((windowStartMs) =>
    exportNames.map((exportName) => {
      return { ...content, exportName, windowStartMs, part: backfill ?? windowStartMs };
    }),
  );
}
