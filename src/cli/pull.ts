/** `wirewatch pull`: a client of the API, and an example of a correct one. */
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { isBaseUrl, wholeNumber } from '../config/format.ts';
import { counted, grouped } from '../counted.ts';
import { type ContentType, isContentType, NUMBER_MAX } from '../detection/content-type.ts';
import { printable } from '../printable.ts';
import { readMe, readSchema } from '../pull/answers.ts';
import { type Api, createApi } from '../pull/api.ts';
import { type Comparison, compareCopy } from '../pull/compare.ts';
import { type Copy, type OnPage, openCopy, type PageRead } from '../pull/copy.ts';
import { COPY_FORMATS, type CopyFormat, requireFormat } from '../pull/copy-format.ts';
import { openCopyRows } from '../pull/copy-rows.ts';
import { csvForm } from '../pull/csv.ts';
import { catchUp } from '../pull/following.ts';
import { copyAll, type Start } from '../pull/full-copy.ts';
import { openLines } from '../pull/lines.ts';
import {
  checkSelection,
  chooseSelection,
  noteSelection,
  readSelection,
  type Selection,
  SUBSCRIPTIONS_MAX,
  selectionOfCopy,
} from '../pull/selection.ts';
import { Refused } from '../refused.ts';
import { formatMs, SECOND_MS } from '../time.ts';
import { addExamples, commonOptions, instantValue, integerValue, listValue } from './options.ts';
import { print } from './output.ts';
import { printComparison } from './pull-compare.ts';
import { type PullProgress, pullProgress } from './pull-progress.ts';

/** How long the service is asked to wait for a change; proxies give up on a silent answer after a minute. */
const WAIT_SECONDS = 50;
/** Where the service does not wait. */
const POLL_SECONDS_DEFAULT = 60;
const POLL_SECONDS_MAX = 86_400;

interface PullOptions {
  readonly baseUrl: string;
  readonly keyFile: string;
  readonly into: string;
  readonly full?: boolean;
  readonly since?: number;
  readonly subscription?: readonly number[];
  readonly contentType?: ContentType;
  readonly follow?: boolean;
  readonly format?: string;
  readonly pollSeconds?: number;
  readonly compare?: boolean;
}

export function register(command: Command): void {
  command
    .requiredOption('--base-url <url>', 'base address of the service')
    .requiredOption(
      '--key-file <file>',
      'file that contains the API key, the output of key create --json, or an access token',
    )
    .requiredOption('--into <file>', 'file to copy into; an existing copy is continued')
    .option(
      '--full',
      'copy the complete history first; without it, a new copy starts with changes from now on',
    )
    .option(
      '--since <time>',
      'start with the changes delivered at or after this time, at most 31 days ago',
      instantValue,
    )
    .option(
      '--subscription <list>',
      `only these subscriptions (at most ${SUBSCRIPTIONS_MAX}), such as 7001,7002`,
      subscriptionsValue,
    )
    .option('--content-type <type>', 'only text or only image', contentTypeValue)
    .option('--follow', 'keep polling for changes until stopped')
    .option(
      '--poll-seconds <seconds>',
      `how long to wait if there is nothing new (default: ${POLL_SECONDS_DEFAULT})`,
      integerValue(1, POLL_SECONDS_MAX),
    )
    .option('--format <format>', 'format of the copy: sqlite, ndjson or csv (default: sqlite)')
    .option(
      '--compare',
      'compare the copy with the service instead. Changes nothing. Exit code 1 if they differ',
    )
    .action(async (options: PullOptions, self: Command) => {
      if (options.compare === true) {
        printComparison(options.into, await compare(options), commonOptions(self).json);
        return;
      }
      const startsNow = options.full !== true && options.since === undefined && !existsSync(options.into);
      const pulled = await pull(options);
      print(pulled, { json: commonOptions(self).json, text: () => pulledText(pulled, startsNow) });
    });
  addExamples(command, [
    'pull --base-url http://127.0.0.1:8080 --key-file key --into copy.db --full',
    'pull --base-url http://127.0.0.1:8080 --key-file key --into changes.ndjson --format ndjson --follow',
    'pull --base-url http://127.0.0.1:8080 --key-file key --into copy.db --compare',
  ]);
}

interface Pulled {
  readonly into: string;
  /** Rows that the service returned; a detection can be among them several times. */
  readonly rows_read: number;
  /** Those that were new to the copy or newer than its version. */
  readonly stored: number;
  /** In the copy; null for NDJSON. */
  readonly detections: number | null;
}

function pulledText({ into, stored, detections }: Pulled, startsNow: boolean): string {
  const done =
    detections === null
      ? `${counted(stored, 'line')} added to ${into}.`
      : `${counted(stored, 'detection')} added or changed in ${into}, which now has ${grouped(detections)}.`;
  const start = startsNow
    ? '\nThis new copy starts with changes from now on. To copy the history as well, delete the copy and run the command again with --full.'
    : '';
  return `${done} Run the same command again to fetch later changes.${start}`;
}

/** A connection to the service, until the command is stopped. */
interface Session {
  readonly api: Api;
  readonly signal: AbortSignal;
  readonly shown: PullProgress;
}

function begin(options: PullOptions): Session {
  const stopping = new AbortController();
  const stop = () => stopping.abort(new Stopped());
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  const { signal } = stopping;
  const shown = pullProgress();
  const api = createApi({
    baseUrl: baseUrlOf(options.baseUrl),
    key: readKey(options.keyFile),
    signal,
    sleep: (ms) => sleep(ms, undefined, { signal }),
    onWait: (reason, waitMs) => {
      shown.end();
      process.stderr.write(`${printable(reason)}; waiting ${Math.ceil(waitMs / SECOND_MS)} s\n`);
    },
  });
  return { api, signal, shown };
}

/** @throws Refused `failed` if the key cannot read the selection */
async function startOf(api: Api, selection: Selection): Promise<Start> {
  const { body, dateMs } = await api.get('/v1/me');
  const me = readMe(body);
  checkSelection(me, selection);
  return { me, dateMs, selection };
}

function selectionOf({ subscription, contentType }: PullOptions): Selection {
  return { subscriptions: subscription?.slice() ?? null, content_type: contentType ?? null };
}

async function pull(options: PullOptions): Promise<Pulled> {
  const session = begin(options);
  const copy = await open(session.api, options);
  let rows_read = 0;
  let stored = 0;
  const onPage = (page: PageRead) => {
    rows_read += page.rows;
    stored += page.stored;
    session.shown.update(page.what, rows_read);
  };
  try {
    await readOn(session, copy, options, onPage).catch((error: unknown) => {
      // What was stored is complete, and the same command continues from there: with --follow, stopping is no failure.
      if (!session.signal.aborted) throw error;
      if (options.follow !== true) process.exitCode = 1;
    });
    return { into: options.into, rows_read, stored, detections: copy.count() };
  } finally {
    session.shown.end();
    copy.close();
  }
}

async function readOn(
  { api, signal, shown }: Session,
  copy: Copy,
  options: PullOptions,
  onPage: OnPage,
): Promise<void> {
  refuseMisuse(copy, options);
  const selection = chooseSelection(selectionOfCopy(copy), options.into, selectionOf(options));
  const start = await startOf(api, selection);
  noteSelection(copy, selection);
  const since = await beginning(api, copy, options, start, onPage, () => {
    shown.end();
    process.stderr.write(`${beginsAnew(options)}\n`);
  });
  for (;;) {
    // Whoever sets how often to ask is not made to wait for an answer.
    const waitSeconds = options.follow === true && options.pollSeconds === undefined ? WAIT_SECONDS : 0;
    const hasWaited = await catchUp(api, copy, selection, since, onPage, waitSeconds);
    if (options.follow !== true) return;
    if (hasWaited) continue;
    await sleep((options.pollSeconds ?? POLL_SECONDS_DEFAULT) * SECOND_MS, undefined, { signal });
  }
}

class Stopped extends Error {}

async function compare(options: PullOptions): Promise<Comparison> {
  const { into, since, full, follow } = options;
  if (full === true || follow === true)
    throw new Refused('usage', '--compare only compares: leave out --full and --follow');
  const format = formatOf(options);
  if (format === 'csv') throw new Refused('usage', '--compare reads a copy in SQLite or NDJSON, not in CSV');
  const copy = openCopyRows(into, format);
  const { api, signal, shown } = begin(options);
  try {
    if (since !== undefined && copy.cursor !== null)
      throw new Refused('usage', `${into} already records its position: leave out --since`);
    const noted = copy.cursor === null ? null : readSelection(copy.selection);
    const selection = chooseSelection(noted, into, selectionOf(options));
    const start = await startOf(api, selection);
    let rows = 0;
    return await compareCopy(
      api,
      copy,
      start,
      since === undefined ? formatMs(start.dateMs) : new Date(since).toISOString(),
      (page) => {
        rows += page.rows;
        shown.update(page.what, rows);
      },
    );
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new Refused('failed', 'stopped before the comparison was complete');
  } finally {
    shown.end();
    copy.close();
  }
}

/** @throws Refused `usage` for options that contradict each other or the existing copy */
function refuseMisuse(copy: Copy, { into, full, since }: PullOptions): void {
  if (since === undefined) return;
  if (copy.cursor() !== null) {
    throw new Refused(
      'usage',
      `${into} already exists, and --since is only for a new copy. Leave it out to continue the copy.`,
    );
  }
  if (full === true || copy.walk() !== null)
    throw new Refused('usage', '--full starts with the complete history: leave out --since');
}

/** @returns the `since` of a copy that has no cursor yet; it does not matter for one that has */
async function beginning(
  api: Api,
  copy: Copy,
  options: PullOptions,
  start: Start,
  onPage: OnPage,
  onAnew: () => void,
): Promise<string> {
  if (copy.cursor() !== null) return '';
  if (options.full === true || copy.walk() !== null) return copyAll(api, copy, start, onPage, onAnew);
  if (options.since !== undefined) return new Date(options.since).toISOString();
  // The server's clock, not this machine's: a time in the server's future would be refused.
  return formatMs(start.dateMs);
}

function beginsAnew({ into, format }: PullOptions): string {
  const kept =
    format === 'ndjson' || format === 'csv'
      ? 'rows that are read again are appended again'
      : 'rows that were already read are kept';
  return `the full copy in ${printable(into)} was started too long ago: the change stream only goes back 31 days. The copy starts again; ${kept}.`;
}

/** Option value: subscription ids, without duplicates. */
function subscriptionsValue(value: string): number[] {
  const numbers = listValue(value).map((item) => wholeNumber(item, 1, NUMBER_MAX));
  const known = numbers.filter((number) => number !== null);
  if (known.length === numbers.length && known.length <= SUBSCRIPTIONS_MAX) return known;
  throw new InvalidArgumentError(
    `Expected at most ${SUBSCRIPTIONS_MAX} comma-separated subscription ids, such as 7001,7002.`,
  );
}

/** Option value: `text` or `image`. */
function contentTypeValue(value: string): ContentType {
  if (isContentType(value)) return value;
  throw new InvalidArgumentError('Expected text or image.');
}

async function open(api: Api, options: PullOptions): Promise<Copy> {
  switch (formatOf(options)) {
    case 'sqlite':
      return openCopy(options.into);
    case 'ndjson':
      return openLines(options.into);
    case 'csv':
      return openLines(options.into, csvForm(readSchema((await api.get('/v1/schema/detection')).body)));
  }
}

/** @throws Refused `usage` for a format that is none, or not that of the existing copy */
function formatOf({ format: given = 'sqlite', into }: PullOptions): CopyFormat {
  const format = COPY_FORMATS.find((known) => known === given);
  if (format === undefined)
    throw new Refused('usage', `invalid --format ${given}: expected sqlite, ndjson or csv`);
  requireFormat(into, format);
  return format;
}

function readKey(path: string): string {
  if (!existsSync(path))
    throw new Refused(
      'failed',
      `there is no key file ${path}. Create it, with the API key as its only content.`,
    );
  const key = keyIn(readFileSync(path, 'utf8').trim());
  if (/^[\w.~+/=-]+$/.test(key)) return key;
  throw new Refused(
    'failed',
    `${path} does not contain an API key: expected the key alone, or the output of key create --json`,
  );
}

/** The key in a file that contains the key alone, or the document that `key create --json` prints. */
function keyIn(content: string): string {
  if (!content.startsWith('{')) return content;
  try {
    const { key }: { key?: unknown } = JSON.parse(content);
    return typeof key === 'string' ? key : '';
  } catch {
    return '';
  }
}

function baseUrlOf(value: string): string {
  if (!isBaseUrl(value))
    throw new Refused(
      'usage',
      `invalid --base-url ${value}: expected an address such as http://127.0.0.1:8080`,
    );
  return value.replace(/\/+$/, '');
}
