/** `wirewatch window`: the ten-minute windows of the exports. */
import type { Command } from 'commander';
import { type Reading, read, wrong } from '../config/option-values.ts';
import { counted } from '../counted.ts';
import { EXPORT_NAMES, type ExportName, isExportName } from '../detection/content-type.ts';
import { windowsWithHeldFile } from '../ingest/file-record.ts';
import { RELEASES, type Release, requireStatus } from '../ingest/requests/window-release.ts';
import { Refused } from '../refused.ts';
import { formatMs, WINDOW_MS } from '../time.ts';
import {
  type ExportWindow,
  findWindow,
  listWindows,
  WINDOW_STATUSES,
  type WindowStatus,
} from '../windows/ledger.ts';
import { statusPhrase } from '../windows/window-states.ts';
import { argument, commandGroup, listResult, option, type Register, subcommand } from './command.ts';
import { configOf, withDetections } from './installation.ts';
import { DROP_OPTION, integer, readWindowStart } from './options.ts';
import type { Column } from './output.ts';

const WINDOWS_DEFAULT = 1000;
const WINDOWS_MAX = 1_000_000;
const EXPORT = argument('<export>', 'newswire or imagewire', readExport);
const START_HELP =
  'start of the window, as in file names (20261121T1010Z) or as a time (2026-11-21T10:10:00Z)';

const COLUMNS: readonly Column<ReturnType<typeof windowDocument>>[] = [
  { title: 'EXPORT', value: (window) => window.export },
  { title: 'WINDOW START', value: ({ window_start }) => window_start },
  { title: 'STATUS', value: ({ status }) => status },
  { title: 'SINCE', value: ({ since }) => since },
  { title: 'FILE NO.', value: ({ file }) => file, align: 'right' },
];

const list = subcommand('list', 'list windows and their status, the newest first', {
  arguments: [argument('[export]', 'newswire or imagewire (default: both)', readExport)],
  options: [
    option('--status <status>', `only windows with this status: ${WINDOW_STATUSES.join(', ')}`, readStatus),
    option(
      '--limit <number>',
      `list at most this many (default: ${WINDOWS_DEFAULT})`,
      integer(1, WINDOWS_MAX),
    ),
  ],
  examples: ['window list', 'window list newswire --status failed'],
  run({ export: exportName = null, status = null, limit = WINDOWS_DEFAULT }, self) {
    const wanted = { export: exportName, status, limit };
    const windows = withDetections(configOf(self), [], (db) => listWindows(db, wanted));
    const none =
      exportName === null && status === null
        ? 'There are no windows yet. The list starts with the first window that is read.'
        : 'No windows match.';
    return listResult(windows.map(windowDocument), COLUMNS, none);
  },
});

const DESCRIPTIONS: Readonly<Record<Release['name'], string>> = {
  reset: 'read a failed window again: the newest file for it in held/, or else the file that failed',
  accept: 'read an abandoned window after all: the newest file for it in held/',
};

/** The document and the text of one window. */
interface Released {
  readonly document: {
    readonly export: ExportName;
    readonly window_start: string;
    readonly status: WindowStatus | undefined;
    /** Null, like the outcome, if nothing was read. */
    readonly file: string | null;
    readonly outcome: string | null;
    readonly reason: string | null;
  };
  readonly text: string;
}

function releaseCommand(release: Release): Register {
  const { name, from } = release;
  return subcommand(name, DESCRIPTIONS[name], {
    arguments: [EXPORT, argument('[start...]', START_HELP, readStarts)],
    options: [option('--all', `all ${from} windows with a file in held/, the oldest first`), DROP_OPTION],
    examples: [`window ${name} newswire 20261121T1010Z`, `window ${name} newswire --all`],
    async run({ export: exportName, start: named = [], all = false }, self) {
      if (named.length > 0 === all)
        throw new Refused('usage', 'expected either the start of a window, or of several, or --all');
      const starts = all
        ? withDetections(configOf(self), [], (db) => windowsWithHeldFile(db, exportName, from))
        : named;
      // All before the first: a mistyped start changes nothing.
      for (const start of starts)
        requireStatus(statusOf(self, exportName, start), release, exportName, start);
      const isList = all || named.length > 1;
      const released: Released[] = [];
      for (const start of starts) {
        const releasing = releaseWindow(self, from, exportName, start);
        const told = (error: unknown) => notReleased(self, error, exportName, start);
        released.push(await (isList ? releasing.catch(told) : releasing));
      }
      const documents = released.map(({ document }) => document);
      return {
        value: isList ? documents : documents[0],
        text:
          released.map(({ text }) => text).join('\n') ||
          `No ${from} window of ${exportName} has a file in held/.`,
        failed: documents.some(({ outcome }) => outcome === 'failed' || outcome === null),
      };
    },
  });
}

/** A window that was refused, among several: the others must still be told, and the next ones tried. */
function notReleased(command: Command, error: unknown, exportName: ExportName, start: number): Released {
  if (!(error instanceof Refused)) throw error;
  const reason = error.message;
  const window_start = formatMs(start);
  const status = statusOf(command, exportName, start);
  return {
    document: { export: exportName, window_start, status, file: null, outcome: null, reason },
    text: `The window ${exportName} ${window_start} was not read: ${reason}`,
  };
}

/** @param start epoch milliseconds */
async function releaseWindow(
  command: Command,
  from: Release['from'],
  exportName: ExportName,
  start: number,
): Promise<Released> {
  const { serveRequest } = await import('./ingest-request.ts');
  const answer = await serveRequest(command, {
    kind: 'reset',
    export: exportName,
    window_start: start,
    from,
  });
  if (!('reset' in answer)) throw new Error('the answer to a reset is of another kind');
  const { file, outcome, reason } = answer.reset;
  const status = statusOf(command, exportName, start);
  const window_start = formatMs(start);
  const text =
    outcome === 'failed'
      ? `${file} failed${from === 'failed' ? ' again' : ''}: ${reason}. The details are in ${file}.reason.json in the drop folder.`
      : `${file}: ${outcome}. The window ${exportName} ${window_start} ${statusPhrase(status)}.`;
  return { document: { export: exportName, window_start, status, file, outcome, reason }, text };
}

const expect = subcommand(
  'expect',
  'set the first window that is expected from an export: earlier windows no longer count as missing, later ones are checked for',
  {
    arguments: [EXPORT, argument('<start>', START_HELP, readWindowStart)],
    options: [DROP_OPTION],
    examples: ['window expect newswire 20261121T1010Z'],
    async run({ export: exportName, start }, self) {
      const from = formatMs(start);
      if (start > Date.now())
        throw new Refused('usage', `the window ${from} is in the future: expected one that has started`);
      const { serveRequest } = await import('./ingest-request.ts');
      const answer = await serveRequest(self, { kind: 'expect', export: exportName, window_start: start });
      if (!('expected' in answer)) throw new Error('the answer to an expect is of another kind');
      const { forgotten } = answer.expected;
      const earlier =
        forgotten === 0
          ? ''
          : ` ${counted(forgotten, 'earlier window is', 'earlier windows are')} no longer missing.`;
      return {
        value: { export: exportName, expected_from: from, no_longer_missing: forgotten },
        text: `Windows of ${exportName} are expected from ${from} on.${earlier}`,
      };
    },
  },
);

export const register = commandGroup(list, ...RELEASES.map(releaseCommand), expect);

/** A window in the contract's names. */
function windowDocument({ export: exportName, window_start, status, since, file }: ExportWindow) {
  return {
    export: exportName,
    window_start: formatMs(window_start),
    window_end: formatMs(window_start + WINDOW_MS),
    status,
    since: formatMs(since),
    file,
  };
}

function statusOf(command: Command, exportName: ExportName, start: number): WindowStatus | undefined {
  return withDetections(configOf(command), undefined, (db) => findWindow(db, exportName, start)?.status);
}

/** Each start once, in the order in which they are named. */
function readStarts(text: string, previous: readonly number[] = []): Reading<readonly number[]> {
  const start = readWindowStart(text);
  return start.kind === 'wrong' ? start : read([...new Set([...previous, start.value])]);
}

function readExport(text: string): Reading<ExportName> {
  return isExportName(text) ? read(text) : wrong(EXPORT_NAMES.join(' or '));
}

function readStatus(text: string): Reading<WindowStatus> {
  const status = WINDOW_STATUSES.find((known) => known === text);
  return status === undefined ? wrong(`one of ${WINDOW_STATUSES.join(', ')}`) : read(status);
}
