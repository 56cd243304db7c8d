/** The ten-minute windows of the exports: which were read, which failed, and which are read after all. */
import { Type } from '@sinclair/typebox';
import { dropNames, holdRules } from '../config/load.ts';
import { type Reading, read, readWindowStart } from '../config/option-values.ts';
import { counted } from '../counted.ts';
import { EXPORT_NAMES, type ExportName } from '../detection/content-type.ts';
import { unanswering, unlistable } from '../drop/waiting-names.ts';
import { isAnswering } from '../health/disk.ts';
import { heldFiles } from '../ingest/files/folder-scan.ts';
import { failed, misused, reasonIfRefused } from '../refused.ts';
import { listText } from '../text-layout.ts';
import { DAY_MS, formatMs, WINDOW_MS } from '../time.ts';
import { type ExportWindow, findWindow, listWindows } from '../windows/ledger.ts';
import { type ResettableStatus, statusPhrase, WINDOW_STATUSES } from '../windows/window-states.ts';
import { choice, list, required, toggle, value, whole } from './member.ts';
import { TIME } from './members.ts';
import { act, type Context, noted, reading } from './operation.ts';

const WINDOWS_DEFAULT = 1000;
const WINDOWS_MAX = 1_000_000;
/** Every window from the first on becomes missing in one transaction. */
const EXPECTED_MS_MAX = 5 * 366 * DAY_MS;
const EXPORT = choice(EXPORT_NAMES, { placeholder: 'export' });
const START_HINT =
  'start of the window, as in file names (20261121T1010Z) or as a time (2026-11-21T10:10:00Z)';

const WINDOW = Type.Object({
  export: EXPORT.schema,
  window_start: TIME,
  window_end: TIME,
  status: Type.Union(WINDOW_STATUSES.map((status) => Type.Literal(status))),
  since: TIME,
  file: Type.Union([Type.Integer(), Type.Null()]),
  held_file: Type.Union([Type.String(), Type.Null()]),
});
const LISTED = ['export', 'window_start', 'status', 'since', 'file', 'held_file'] as const;
const RELEASES = [
  {
    name: 'reset',
    from: 'failed',
    summary:
      'read a failed window again: the newest file for it in the drop folder, or else the file that failed',
    label: 'Reset',
    only: 'only a failed window can be reset',
    will: 'The newest file for the window in the drop folder is read; without one, the failed file is read again. Its detections then reach the change stream. Other files for the window are then read as corrections.',
  },
  {
    name: 'accept',
    from: 'abandoned',
    summary:
      'read an abandoned window after all: the newest file for it in the drop folder. Or do without the file of a failed window: the window counts as done',
    label: 'Accept',
    only: 'only an abandoned or failed window can be accepted',
    will: 'Of an abandoned window, the newest file in the drop folder is read, and its detections reach the change stream. A failed window counts as done without the file that failed, which stays in failed/. Other files for the window are then read as corrections.',
  },
] as const;
type Release = (typeof RELEASES)[number];
type Window = Pick<ExportWindow, 'export' | 'window_start'>;

export const WINDOWS = [
  reading('window list', {
    summary: 'list windows and their status, the newest first, with the file that is held for each',
    members: {
      export: { ...EXPORT, hint: 'newswire or imagewire (default: both)' },
      status: choice(WINDOW_STATUSES, { hint: 'only windows with this status', placeholder: 'status' }),
      limit: whole(1, WINDOWS_MAX, `list at most this many (default: ${WINDOWS_DEFAULT})`),
    },
    operands: ['export'],
    result: Type.Array(WINDOW),
    examples: ['window list', 'window list newswire --status failed'],
    readsDrop: true,
    async run(context, { export: exportName = null, status = null, limit = WINDOWS_DEFAULT }) {
      const held = new Map((await heldIn(context)).map(({ file }) => [nameOf(file), file.name]));
      const db = context.detections();
      const windows = db === null ? [] : listWindows(db, { export: exportName, status, limit });
      const value = windows.map((window) => ({
        export: window.export,
        window_start: formatMs(window.window_start),
        window_end: formatMs(window.window_start + WINDOW_MS),
        status: window.status,
        since: formatMs(window.since),
        file: window.file,
        held_file: held.get(nameOf(window)) ?? null,
      }));
      return { value };
    },
    text: listText('No windows match. The list starts with the first window that is read.', LISTED),
  }),
  ...RELEASES.map(releaseOperation),
  act('window expect', {
    summary:
      'set the first window that is expected from an export: earlier windows no longer count as missing, later ones are checked for',
    members: {
      export: required(EXPORT),
      start: required(value(readWindowStart, { hint: START_HINT, placeholder: 'start' })),
    },
    operands: ['export', 'start'],
    examples: ['window expect newswire 20261121T1010Z'],
    readsDrop: true,
    form: {
      label: 'Expect windows from here',
      title: 'Expect windows only from',
      will: 'Windows before this one no longer count as missing or abandoned. Later ones are checked at once.',
    },
    job: ({ export: exportName, start: window_start }) => [nameOf({ export: exportName, window_start })],
    async run(context, { export: exportName, start }) {
      const from = formatMs(start);
      if (start > context.nowMs)
        throw misused(`the window ${from} is in the future: expected one that has started`);
      if (start < context.nowMs - EXPECTED_MS_MAX)
        throw misused(`the window ${from} is too long ago: expected one of the last five years`);
      const request = { kind: 'expect', export: exportName, window_start: start } as const;
      const { forgotten } = await context.ingest(noted(context, request));
      const earlier =
        forgotten === 0
          ? ''
          : ` ${counted(forgotten, 'earlier window is', 'earlier windows are')} no longer missing.`;
      const value = { export: exportName, expected_from: from, no_longer_missing: forgotten };
      return { value, done: `Windows of ${exportName} are expected from ${from} on.${earlier}` };
    },
  }),
];

function releaseOperation(release: Release) {
  const { name, from, summary, label, will } = release;
  return act(`window ${name}`, {
    summary,
    members: {
      export: required(EXPORT),
      start: list(readStarts, { hint: START_HINT, placeholder: 'start', several: 'repeated' }),
      all: toggle(`all ${from} windows with a file in the drop folder, the oldest first`),
    },
    operands: ['export', 'start'],
    examples: [`window ${name} newswire 20261121T1010Z`, `window ${name} newswire --all`],
    readsDrop: true,
    form: { label, will, fields: [] },
    job: ({ export: exportName, start = [] }) => [
      start.map((window_start) => nameOf({ export: exportName, window_start })).join(', ') || exportName,
    ],
    async run(context, { export: exportName, start: named = [], all = false }) {
      if (named.length > 0 === all)
        throw misused('expected either the start of a window, or of several, or --all');
      const starts = all ? await heldStarts(context, exportName, from) : named;
      const windows = starts.map((window_start) => ({ export: exportName, window_start }));
      // All before the first: a mistyped start changes nothing.
      for (const window of windows) requireStatus(context, release, window);
      const isList = all || named.length > 1;
      const documents: ReleasedWindow[] = [];
      for (const window of windows) documents.push(await released(context, from, window, isList));
      return {
        value: isList ? documents : documents[0],
        done:
          documents.map((document) => releasedText(document, from)).join('\n') ||
          `No ${from} window of ${exportName} has a file in the drop folder.`,
        failed: documents.some(({ outcome }) => outcome === 'failed' || outcome === null),
      };
    },
  });
}

/** The files in the drop folder that wait for an operator. @throws Refused `failed` if it hangs */
export async function heldIn({ config, detections }: Pick<Context, 'config' | 'detections'>) {
  const { drop } = config.ingest;
  // Listing it would hold the thread, and with it every revocation.
  if (!(await isAnswering(drop))) throw failed(`${unanswering(drop)}, then try again.`);
  const db = detections();
  return db === null ? [] : heldFiles(dropNames(config), db, holdRules(config));
}

async function heldStarts(context: Context, exportName: ExportName, from: ResettableStatus) {
  const all = await heldIn(context);
  const unlisted = unlistable(context.config.ingest.drop);
  if (unlisted !== null) throw failed(`${unlisted}.`);
  const held = all.filter(({ file, status }) => file.export === exportName && status === from);
  return [...new Set(held.map(({ file }) => file.window_start))];
}

/** @throws Refused `failed` if the release is not for windows with the status of this one; names the one that is */
function requireStatus(context: Context, { name, from, only }: Release, window: Window): void {
  const status = statusOf(context, window);
  if (status === from || (name === 'accept' && status === 'failed')) return;
  const right = RELEASES.find((release) => release.from === status);
  const next =
    right === undefined
      ? `See: wirewatch window list ${window.export} --status ${from}`
      : `Run: wirewatch window ${right.name} ${nameOf(window)}`;
  throw failed(`the window ${nameOf(window)} ${statusPhrase(status)}: ${only}. ${next}`);
}

type ReleasedWindow = Awaited<ReturnType<typeof released>>;

/**
 * Reads a window, or does without the file of a failed one.
 * @param isList among several: a refusal is told, and the next ones are tried
 * @returns what became of it; `file` and `outcome` are null if nothing was read
 */
async function released(context: Context, from: ResettableStatus, window: Window, isList: boolean) {
  const isDismissed = from === 'abandoned' && statusOf(context, window) === 'failed';
  const request = isDismissed
    ? ({ kind: 'dismiss', ...window } as const)
    : ({ kind: 'reset', ...window, from } as const);
  const answer = await context.ingest(noted(context, request)).catch((error: unknown) => {
    if (!isList) throw error;
    return { file: null, outcome: null, reason: reasonIfRefused(error) };
  });
  const status = statusOf(context, window);
  const result = answer ?? { file: null, outcome: 'dismissed', reason: null };
  return { export: window.export, window_start: formatMs(window.window_start), status, ...result };
}

function releasedText(document: ReleasedWindow, from: ResettableStatus): string {
  const { status, file, outcome, reason } = document;
  const window = `The window ${document.export} ${document.window_start}`;
  switch (outcome) {
    case null:
      return `${window} was not read: ${reason}`;
    case 'failed':
      return `${file} failed${from === 'failed' ? ' again' : ''}: ${reason}. The details are in ${file}.reason.json in the drop folder.`;
    case 'dismissed':
      return status === 'done'
        ? `${window} is done without the file that failed.`
        : `${window} is forgotten: no file is expected for it.`;
    default:
      return `${file}: ${outcome}. ${window} ${statusPhrase(status)}.`;
  }
}

function statusOf({ detections }: Context, window: Window) {
  const db = detections();
  return db === null ? undefined : findWindow(db, window.export, window.window_start)?.status;
}

const nameOf = (window: Window): string => `${window.export} ${formatMs(window.window_start)}`;

function readStarts(texts: readonly string[]): Reading<readonly number[]> {
  const starts = new Set<number>();
  for (const reading of texts.map(readWindowStart))
    if (reading.kind === 'read') starts.add(reading.value);
    else return reading;
  return read([...starts]);
}
