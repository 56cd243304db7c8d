/** `wirewatch pull`: a client of the API, and an example of a correct one. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, extname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { counted, grouped } from '../counted.ts';
import { choice, instant, required, toggle, type ValuesOf, value, whole } from '../operations/member.ts';
import { failed, misused, reasonOf } from '../refused.ts';
import { documentTable, joined } from '../text-layout.ts';
import { SECOND_MS } from '../time.ts';
import { createApi, parseJson } from '../tools/pull/api.ts';
import { type Comparison, compareCopy } from '../tools/pull/compare.ts';
import { type Copy, openLines, openSqliteCopy, placeOf, refusedIn } from '../tools/pull/copy.ts';
import { beginFull, catchUp, readStart, type Work, walkPeriods } from '../tools/pull/procedures.ts';
import { defineCommand, pathMember } from './command.ts';
import { readUrl } from './options.ts';
import { note, type Result, showProgress } from './output.ts';

/** How long the service may wait for a change; proxies give up after a minute. */
const WAIT_SECONDS = 50;
/** How often a copy that follows asks what its key reads. A service may give the same answer for a minute. */
const ASK_MS = 60 * SECOND_MS;
/** Between requests to a service that does not wait. */
const POLL_SECONDS_DEFAULT = 60;
const POLL_SECONDS_MAX = 86_400;
const DIFFERENCES_SHOWN_MAX = 20;

const MEMBERS = {
  base_url: required(value(readUrl, { hint: 'base address of the service', placeholder: 'url' })),
  key_file: required(
    pathMember('file that contains the API key, the output of key create --json, or an access token'),
  ),
  into: required(pathMember('file to copy into; an existing copy is continued')),
  full: toggle('copy the complete history first; without it, a new copy starts with changes from now on'),
  since: instant(
    'start a new copy with the changes delivered at or after this time, at most 31 days ago; ignored for a copy that has begun',
  ),
  follow: toggle('keep polling for changes until stopped'),
  poll_seconds: whole(
    1,
    POLL_SECONDS_MAX,
    `with --follow: ask again after this time, instead of having the service wait for the next change (default: the service waits; one that cannot is asked every ${POLL_SECONDS_DEFAULT} s)`,
    'seconds',
  ),
  format: choice(['sqlite', 'ndjson'], {
    hint: 'format of the copy, by default ndjson if the name of the file ends with .ndjson, otherwise sqlite',
    placeholder: 'format',
  }),
  compare: toggle('compare the copy with the service instead. Changes nothing. Exit code 1 if they differ'),
};

type PullOptions = ValuesOf<typeof MEMBERS>;

export const register = defineCommand({
  members: MEMBERS,
  examples: [
    'pull --base-url http://127.0.0.1:8080 --key-file key --into copy.db --full',
    'pull --base-url http://127.0.0.1:8080 --key-file key --into changes.ndjson --follow',
    'pull --base-url http://127.0.0.1:8080 --key-file key --into copy.db --compare',
  ],
  run: (options) =>
    updateOrCompare(options).catch((error: unknown) => {
      throw refusedIn(options.into, options.compare ?? false, error);
    }),
});

async function updateOrCompare(options: PullOptions): Promise<Result> {
  const { into, base_url: baseUrl, full = false, follow = false, compare = false } = options;
  if (compare && (full || follow)) throw misused('--compare changes nothing: leave out --full and --follow.');
  if (full && options.since !== undefined)
    throw misused('--full copies the complete history: leave out --since.');
  const stopping = new AbortController();
  const { signal } = stopping;
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => stopping.abort(new Error('stopped')));
  const onWait = (reason: string, waitMs: number) =>
    note(`${reason}; waiting ${Math.ceil(waitMs / SECOND_MS)} s`);
  const api = createApi({ baseUrl, key: readKey(options.key_file), signal, onWait });
  using copy = open(options);
  const { cursor } = copy.position();
  const since = options.since === undefined ? null : new Date(options.since).toISOString();
  if (compare) requireComplete(copy, into);
  else if (cursor !== null) checkBegun(copy, options);
  const startsNow = cursor === null && since === null && !full;
  const sums = { rows_read: 0, stored: 0 };
  const onPage: Work['onPage'] = (what, rows, stored) => {
    sums.rows_read += rows;
    sums.stored += stored;
    showProgress(`${what}, rows`, sums.rows_read);
  };
  const pulled = (failed = false): Result => {
    const detections = copy.count();
    const text = pulledText(into, sums.stored, detections, startsNow);
    return { value: { into, ...sums, detections }, text, failed };
  };
  try {
    const work: Work = { api, copy, since, onPage, start: await readStart(api) };
    if (compare) {
      const comparison = await compareCopy(work);
      const equal = comparison.differences.length === 0;
      const text = comparisonText(into, comparison);
      return { value: { into, equal, ...comparison }, text, failed: !equal };
    }
    await pull(work, options, signal);
    return pulled();
  } catch (error) {
    if (!signal.aborted) throw error;
    if (compare) throw failed('stopped before the comparison was complete');
    // The same command continues from here. With --follow, stopping is not a failure.
    return pulled(!follow);
  }
}

async function pull(work: Work, options: PullOptions, signal: AbortSignal): Promise<void> {
  const { follow = false, full = false, poll_seconds: pollSeconds } = options;
  // With --poll-seconds the user decides how often to ask.
  const waitSeconds = follow && pollSeconds === undefined ? WAIT_SECONDS : 0;
  const pauseMs = (pollSeconds ?? POLL_SECONDS_DEFAULT) * SECOND_MS;
  if (full && work.copy.position().cursor === null) await beginFull(work);
  for (;;) {
    const askedMs = performance.now();
    await walkPeriods(work);
    do {
      if (follow) work.onPage('following the change stream', 0, 0);
      const isWaitedFor = await catchUp(work, waitSeconds);
      if (!follow) return;
      if (!isWaitedFor) await sleep(pauseMs, undefined, { signal });
    } while (performance.now() < askedMs + ASK_MS);
    work.start = await readStart(work.api);
  }
}

function open(options: PullOptions): Copy {
  const { into, compare: isRead = false } = options;
  if (isRead && !existsSync(into))
    throw failed(`there is no copy ${into}. Make it first with: wirewatch pull --full`);
  const folder = dirname(into);
  if (!isFolder(folder)) throw failed(`there is no folder ${folder}. Create it first.`);
  if (isFolder(into)) throw failed(`${into} is a folder. Name a file with --into.`);
  const isLines = (options.format ?? extname(into).slice(1)) === 'ndjson';
  return isLines ? openLines(into, isRead) : openSqliteCopy(into, isRead);
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/** @throws Refused `failed` for a copy that pull has not completed; that of another client has no position */
function requireComplete(copy: Copy, into: string): void {
  const { cursor, walk } = copy.position();
  const isForeign = copy.count() === null && !existsSync(placeOf(into));
  if (walk === null && (cursor !== null || isForeign)) return;
  throw failed(`the copy ${into} is not complete yet. Run the same command without --compare first.`);
}

/** @throws Refused `usage` for options that do not fit a copy that has begun */
function checkBegun(copy: Copy, { into, since, full }: PullOptions): void {
  if (since !== undefined) note(`${into} continues where it stopped; --since is only for a new copy.`);
  if (full !== true || copy.position().streams !== null) return;
  const files = filesOf(into, copy.count() === null);
  const next = `Leave out --full to continue it. To copy the history, delete ${files} first, or name another file.`;
  throw misused(`${into} was started without --full. ${next}`);
}

const filesOf = (into: string, isLines: boolean): string => (isLines ? `${into} and ${placeOf(into)}` : into);

function pulledText(into: string, stored: number, detections: number | null, startsNow: boolean): string {
  const done =
    detections === null
      ? `${counted(stored, 'line')} added to ${into}.`
      : `${counted(stored, 'detection')} added or changed in ${into}, which now has ${grouped(detections)}.`;
  const start = startsNow
    ? `\nThis new copy starts with changes from now on. To copy the history as well, delete ${filesOf(into, detections === null)} and run the command again with --full.`
    : '';
  return `${done} Run the same command again to fetch later changes.${start}`;
}

function comparisonText(into: string, comparison: Comparison): string {
  const { detections, changed_since, not_read, differences } = comparison;
  const listed = differences.slice(0, DIFFERENCES_SHOWN_MAX);
  const shown = documentTable(listed, ['id', 'kind', 'copy_version', 'service_version']);
  const more = differences.length - DIFFERENCES_SHOWN_MAX;
  const compared = counted(detections - not_read.detections, 'detection');
  const result =
    differences.length > 0
      ? `differs from the service: ${counted(differences.length, 'difference')} in ${counted(detections, 'detection')}.`
      : `matches the service: ${compared} compared.`;
  return joined('\n', [
    differences.length > 0 && shown,
    more > 0 && `and ${grouped(more)} more; --json lists all of them`,
    `The copy ${into} ${result}`,
    changed_since > 0 &&
      `Not compared: ${counted(changed_since, 'detection')}, changed after the copy was updated.`,
    not_read.detections > 0 &&
      `Not compared: ${counted(not_read.detections, 'detection')} of ${not_read.streams.join(', ')}, which this key no longer reads.`,
  ]);
}

/** Reads a file that contains the key alone, or the output of `key create --json`. */
function readKey(path: string): string {
  let content: string;
  try {
    content = readFileSync(path, 'utf8').trim();
  } catch (error) {
    throw failed(
      `the key file ${path} cannot be read: ${reasonOf(error, path)}. Name a file that contains the API key with --key-file.`,
    );
  }
  const key: unknown = Object(parseJson(content)).key ?? content;
  if (typeof key === 'string' && /^[\w.~+/=-]+$/.test(key)) return key;
  const expected = 'expected the key alone, or the output of key create --json';
  throw failed(`${path} does not contain an API key: ${expected}`);
}
