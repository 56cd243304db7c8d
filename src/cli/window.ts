/** `wirewatch window`: the ten-minute windows of the exports. */

import { type Command, InvalidArgumentError } from 'commander';
import { counted } from '../counted.ts';
import { EXPORT_NAMES, type ExportName, isExportName } from '../detection/content-type.ts';
import { windowsWithHeldFile } from '../ingest/file-record.ts';
import type { ResettableStatus } from '../ingest/requests/requests.ts';
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
import { statusPhrase } from '../windows/transitions.ts';
import { configOf, withDetections } from './config.ts';
import { addDropOption, addExamples, commonOptions, integerValue, windowStartValue } from './options.ts';
import { print, table } from './output.ts';

const WINDOWS_DEFAULT = 1000;
const WINDOWS_MAX = 1_000_000;
const START_ARGUMENT =
  'start of the window, as in file names (20261121T1010Z) or as a time (2026-11-21T10:10:00Z)';

export function register(window: Command): void {
  registerList(window);
  for (const release of RELEASES) registerRelease(window, release);
  registerExpect(window);
}

function registerList(window: Command): void {
  const command = window
    .command('list')
    .argument('[export]', 'newswire or imagewire (default: both)', exportValue)
    .option('--status <status>', `only windows with this status: ${WINDOW_STATUSES.join(', ')}`, statusValue)
    .option(
      '--limit <number>',
      `list at most this many (default: ${WINDOWS_DEFAULT})`,
      integerValue(1, WINDOWS_MAX),
    )
    .description('list windows and their status, the newest first')
    .action(
      (
        exportName: ExportName | undefined,
        options: { status?: WindowStatus; limit?: number },
        self: Command,
      ) => {
        const wanted = {
          export: exportName ?? null,
          status: options.status ?? null,
          limit: options.limit ?? WINDOWS_DEFAULT,
        };
        const windows = withDetections(configOf(self), [], (db) => listWindows(db, wanted)).map(
          windowDocument,
        );
        const none =
          wanted.export === null && wanted.status === null
            ? 'There are no windows yet. The list starts with the first window that is read.'
            : 'No windows match.';
        const text = () => (windows.length === 0 ? none : windowTable(windows));
        print(windows, { json: commonOptions(self).json, text });
      },
    );
  addExamples(command, ['window list', 'window list newswire --status failed']);
}

const DESCRIPTIONS: Readonly<Record<Release['name'], string>> = {
  reset: 'read a failed window again: the newest file for it in held/, or else the file that failed',
  accept: 'read an abandoned window after all: the newest file for it in held/',
};

function registerRelease(window: Command, release: Release): void {
  const { name, from } = release;
  const command = window
    .command(name)
    .argument('<export>', 'newswire or imagewire', exportValue)
    .argument('[start]', START_ARGUMENT, windowStartValue)
    .option('--all', `all ${from} windows with a file in held/, the oldest first`)
    .description(DESCRIPTIONS[name])
    .action(
      async (
        exportName: ExportName,
        start: number | undefined,
        { all = false }: { all?: boolean },
        self: Command,
      ) => {
        if ((start === undefined) !== all)
          throw new Refused('usage', 'expected either the start of a window or --all');
        const starts = start === undefined ? heldWindows(self, exportName, from) : [start];
        const results: Released[] = [];
        for (const each of starts) results.push(await releaseWindow(self, release, exportName, each));
        const none = `No ${from} window of ${exportName} has a file in held/.`;
        print(all ? results.map(({ text: _, ...result }) => result) : withoutText(results[0]), {
          json: commonOptions(self).json,
          text: results.map(({ text }) => text).join('\n') || none,
        });
        if (results.some(({ outcome }) => outcome === 'failed')) process.exitCode = 1;
      },
    );
  addDropOption(command);
  addExamples(command, [`window ${name} newswire 20261121T1010Z`, `window ${name} newswire --all`]);
}

/** The result for one window. */
interface Released {
  readonly export: ExportName;
  readonly window_start: string;
  readonly status: WindowStatus | undefined;
  readonly file: string;
  readonly outcome: string;
  readonly reason: string | null;
  readonly text: string;
}

function withoutText(released: Released | undefined): Omit<Released, 'text'> | undefined {
  if (released === undefined) return undefined;
  const { text: _, ...document } = released;
  return document;
}

async function releaseWindow(
  command: Command,
  release: Release,
  exportName: ExportName,
  start: number,
): Promise<Released> {
  const { from } = release;
  requireStatus(statusOf(command, exportName, start), release, exportName, start);
  const { serveRequest } = await import('./ingest-request.ts');
  const wanted = { kind: 'reset', export: exportName, window_start: start, from } as const;
  const answer = await serveRequest(command, wanted);
  if (!answer.ok) throw new Refused('failed', answer.reason);
  if (!('reset' in answer)) throw new Error('the answer to a reset is of another kind');
  const { file, outcome, reason } = answer.reset;
  const status = statusOf(command, exportName, start);
  const text =
    outcome === 'failed'
      ? `${file} failed${from === 'failed' ? ' again' : ''}: ${reason}. The details are in ${file}.reason.json in the drop folder.`
      : `${file}: ${outcome}. The window ${exportName} ${formatMs(start)} ${statusPhrase(status)}.`;
  return { export: exportName, window_start: formatMs(start), status, file, outcome, reason, text };
}

/** Starts of the windows with a status and a held file, the oldest first. */
function heldWindows(command: Command, exportName: ExportName, from: ResettableStatus): number[] {
  return withDetections(configOf(command), [], (db) => windowsWithHeldFile(db, exportName, from));
}

function registerExpect(window: Command): void {
  const command = window
    .command('expect')
    .argument('<export>', 'newswire or imagewire', exportValue)
    .argument('<start>', START_ARGUMENT, windowStartValue)
    .description(
      'set the first window that is expected from an export: earlier windows no longer count as missing, later ones are checked for',
    )
    .action(async (exportName: ExportName, start: number, _options, self: Command) => {
      if (start > Date.now())
        throw new Refused(
          'usage',
          `the window ${formatMs(start)} is in the future: expected one that has started`,
        );
      const { serveRequest } = await import('./ingest-request.ts');
      const outcome = await serveRequest(self, { kind: 'expect', export: exportName, window_start: start });
      if (!outcome.ok) throw new Refused('failed', outcome.reason);
      if (!('expected' in outcome)) return;
      const { forgotten } = outcome.expected;
      const from = formatMs(start);
      const earlier =
        forgotten === 0
          ? ''
          : ` ${counted(forgotten, 'earlier window is', 'earlier windows are')} no longer missing.`;
      print(
        { export: exportName, expected_from: from, no_longer_missing: forgotten },
        {
          json: commonOptions(self).json,
          text: `Windows of ${exportName} are expected from ${from} on.${earlier}`,
        },
      );
    });
  addDropOption(command);
  addExamples(command, ['window expect newswire 20261121T1010Z']);
}

/** A window in the contract's names. */
interface WindowDocument {
  readonly export: ExportName;
  readonly window_start: string;
  readonly window_end: string;
  readonly status: WindowStatus;
  readonly since: string;
  readonly file: number | null;
}

function windowDocument(window: ExportWindow): WindowDocument {
  return {
    export: window.export,
    window_start: formatMs(window.window_start),
    window_end: formatMs(window.window_start + WINDOW_MS),
    status: window.status,
    since: formatMs(window.since),
    file: window.file,
  };
}

function windowTable(windows: readonly WindowDocument[]): string {
  return table(windows, [
    { title: 'EXPORT', value: (window) => window.export },
    { title: 'WINDOW START', value: (window) => window.window_start },
    { title: 'STATUS', value: (window) => window.status },
    { title: 'SINCE', value: (window) => window.since },
    { title: 'FILE NO.', value: (window) => window.file, align: 'right' },
  ]);
}

function statusOf(command: Command, exportName: ExportName, start: number): WindowStatus | undefined {
  return withDetections(configOf(command), undefined, (db) => findWindow(db, exportName, start)?.status);
}

function exportValue(value: string): ExportName {
  if (!isExportName(value)) throw new InvalidArgumentError(`Expected ${EXPORT_NAMES.join(' or ')}.`);
  return value;
}

function statusValue(value: string): WindowStatus {
  const status = WINDOW_STATUSES.find((known) => known === value);
  if (status === undefined) throw new InvalidArgumentError(`Expected one of ${WINDOW_STATUSES.join(', ')}.`);
  return status;
}
