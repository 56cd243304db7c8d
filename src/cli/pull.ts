/** `wirewatch pull`: a client of the API, and an example of a correct one. */
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { isBaseUrl, wholeNumber } from '../config/format.ts';
import { counted, grouped } from '../counted.ts';
import { CONTENT_TYPES, type ContentType, NUMBER_MAX } from '../detection/content-type.ts';
import { printable } from '../printable.ts';
import { type Api, createApi, Me, parseJson, Schema } from '../pull/api.ts';
import { type Comparison, compareCopy, type Difference } from '../pull/compare.ts';
import { type Copy, type OnPage, openCopy } from '../pull/copy.ts';
import { csvForm } from '../pull/csv.ts';
import { COPY_FORMATS, type CopyFormat, NDJSON, openLines, requireFormat } from '../pull/lines.ts';
import { catchUp, copyAll, type Start } from '../pull/procedures.ts';
import { checkSelection, chooseSelection, SUBSCRIPTIONS_MAX } from '../pull/selection.ts';
import { Refused } from '../refused.ts';
import { SECOND_MS } from '../time.ts';
import { addExamples, commonOptions, instantValue, integerValue, listValue } from './options.ts';
import { print, table } from './output.ts';
import { pullProgress } from './pull-progress.ts';

/** How long the service is asked to wait for a change; proxies give up on a silent answer after a minute. */
const WAIT_SECONDS = 50;
/** Where the service does not wait. */
const POLL_SECONDS_DEFAULT = 60;
const POLL_SECONDS_MAX = 86_400;
const DIFFERENCES_SHOWN_MAX = 20;

interface PullOptions {
  readonly baseUrl: string;
  readonly keyFile: string;
  readonly into: string;
  readonly full?: boolean;
  readonly since?: number;
  readonly subscription?: number[];
  readonly contentType?: ContentType;
  readonly follow?: boolean;
  readonly format: CopyFormat;
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
    .addOption(new Option('--content-type <type>', 'only this content type').choices(CONTENT_TYPES))
    .option('--follow', 'keep polling for changes until stopped')
    .option(
      '--poll-seconds <seconds>',
      `how long to wait if there is nothing new (default: ${POLL_SECONDS_DEFAULT})`,
      integerValue(1, POLL_SECONDS_MAX),
    )
    .addOption(new Option('--format <format>', 'format of the copy').choices(COPY_FORMATS).default('sqlite'))
    .option(
      '--compare',
      'compare the copy with the service instead. Changes nothing. Exit code 1 if they differ',
    )
    .action((options: PullOptions, self: Command) => run(options, commonOptions(self).json));
  addExamples(command, [
    'pull --base-url http://127.0.0.1:8080 --key-file key --into copy.db --full',
    'pull --base-url http://127.0.0.1:8080 --key-file key --into changes.ndjson --format ndjson --follow',
    'pull --base-url http://127.0.0.1:8080 --key-file key --into copy.db --compare',
  ]);
}

type Shown = ReturnType<typeof pullProgress>;

async function run(options: PullOptions, json: boolean): Promise<void> {
  const { into, full, since, compare } = options;
  const startsNow = full !== true && since === undefined && !existsSync(into);
  const shown = pullProgress();
  const stopping = new AbortController();
  const stop = () => stopping.abort(new Error('stopped'));
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  const { signal } = stopping;
  const api = begin(options, shown, signal);
  const copy = await open(api, options);
  try {
    if (compare === true) {
      const comparison = await compared(api, copy, options, shown).catch((error: unknown) => {
        if (!signal.aborted) throw error;
        throw new Refused('failed', 'stopped before the comparison was complete');
      });
      const equal = comparison.differences.length === 0;
      if (!equal) process.exitCode = 1;
      print({ into, equal, ...comparison }, { json, text: () => comparisonText(into, comparison) });
      return;
    }
    // Rows that the service returned, and those of them that were new to the copy or newer than its version.
    const sums = { rows_read: 0, stored: 0 };
    await readOn(api, copy, options, { sums, shown, signal }).catch((error: unknown) => {
      // What was stored is complete, and the same command continues from there: with --follow, stopping is no failure.
      if (!signal.aborted) throw error;
      if (options.follow !== true) process.exitCode = 1;
    });
    shown.end();
    const pulled = { into, ...sums, detections: copy.count() };
    print(pulled, { json, text: () => pulledText(pulled, startsNow) });
  } finally {
    shown.end();
    copy.close();
  }
}

/** @throws Refused `usage` for options that contradict each other or the existing file */
function begin({ baseUrl, keyFile, ...options }: PullOptions, shown: Shown, signal: AbortSignal): Api {
  const { into, format, full, follow, compare } = options;
  if (!isBaseUrl(baseUrl))
    throw usage(`invalid --base-url ${baseUrl}: expected an address such as http://127.0.0.1:8080`);
  if (compare === true && (full === true || follow === true))
    throw usage('--compare only compares: leave out --full and --follow');
  requireFormat(into, format);
  return createApi({
    baseUrl: baseUrl.replace(/\/+$/, ''),
    key: readKey(keyFile),
    signal,
    onWait: (reason, waitMs) => tell(shown, `${reason}; waiting ${Math.ceil(waitMs / SECOND_MS)} s`),
  });
}

function usage(detail: string): Refused {
  return new Refused('usage', detail);
}

function tell(shown: Shown, line: string): void {
  shown.end();
  process.stderr.write(`${printable(line)}\n`);
}

async function open(api: Api, { into, format, compare: isRead = false }: PullOptions): Promise<Copy> {
  if (isRead && !existsSync(into))
    throw new Refused('failed', `there is no copy ${into}. Make it first with: wirewatch pull --full`);
  if (format === 'sqlite') return openCopy(into, isRead);
  if (format === 'ndjson') return openLines(into, NDJSON, isRead);
  return openLines(into, csvForm((await api.get('/v1/schema/detection', Schema)).body), isRead);
}

/** @throws Refused `usage` or `failed` for a selection that is not that of the copy, or that the key cannot read */
async function startOf(
  api: Api,
  copy: Copy,
  { into, subscription, contentType }: PullOptions,
): Promise<Start> {
  const asked = { subscriptions: subscription ?? null, content_type: contentType ?? null };
  const selection = chooseSelection(copy.notes(), into, asked);
  const { body: me, dateMs } = await api.get('/v1/me', Me);
  checkSelection(me, selection);
  return { me, dateMs, selection };
}

/** The server's clock, not this machine's: a time in the server's future would be refused. */
function sinceOf({ since }: PullOptions, { dateMs }: Start): string {
  return new Date(since ?? dateMs).toISOString();
}

async function readOn(
  api: Api,
  copy: Copy,
  options: PullOptions,
  { sums, shown, signal }: { sums: { rows_read: number; stored: number }; shown: Shown; signal: AbortSignal },
): Promise<void> {
  const { into, follow, pollSeconds } = options;
  const { cursor, walk } = copy.notes();
  const isFull = cursor === null && (options.full === true || walk !== null);
  if (options.since !== undefined && cursor !== null)
    throw usage(
      `${into} already exists, and --since is only for a new copy. Leave it out to continue the copy.`,
    );
  if (options.since !== undefined && isFull)
    throw usage('--full starts with the complete history: leave out --since');
  const start = await startOf(api, copy, options);
  const { selection } = start;
  copy.store([], { selection: JSON.stringify(selection) });
  const onPage: OnPage = ({ what, rows, stored }) => {
    sums.rows_read += rows;
    sums.stored += stored;
    shown.update(what, sums.rows_read);
  };
  const onAnew = () => tell(shown, anewText(options));
  const since = isFull ? await copyAll(api, copy, start, { onPage, onAnew }) : sinceOf(options, start);
  // Whoever sets how often to ask is not made to wait for an answer.
  const waitSeconds = follow === true && pollSeconds === undefined ? WAIT_SECONDS : 0;
  for (;;) {
    const hasWaited = await catchUp(api, copy, { selection, since, waitSeconds }, onPage);
    if (follow !== true) return;
    if (!hasWaited) await sleep((pollSeconds ?? POLL_SECONDS_DEFAULT) * SECOND_MS, undefined, { signal });
  }
}

async function compared(api: Api, copy: Copy, options: PullOptions, shown: Shown): Promise<Comparison> {
  const { into, format } = options;
  const { cursor } = copy.notes();
  if (cursor === null && (format !== 'ndjson' || existsSync(`${into}.place`))) {
    const next = 'Run the same command without --compare first.';
    throw new Refused('failed', `the copy ${into} is not complete yet. ${next}`);
  }
  if (options.since !== undefined && cursor !== null)
    throw usage(`${into} already records its position: leave out --since`);
  const start = await startOf(api, copy, options);
  let read = 0;
  const onPage: OnPage = ({ what, rows }) => {
    read += rows;
    shown.update(what, read);
  };
  const comparison = await compareCopy(api, copy, start, { since: sinceOf(options, start), onPage });
  shown.end();
  return comparison;
}

interface Pulled {
  readonly into: string;
  readonly stored: number;
  /** In the copy; null for lines. */
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

function anewText({ into, format }: PullOptions): string {
  const kept =
    format === 'sqlite'
      ? 'rows that were already read are kept'
      : 'rows that are read again are appended again';
  return `the full copy in ${into} was started too long ago: the change stream only goes back 31 days. The copy starts again; ${kept}.`;
}

function comparisonText(into: string, { detections, changed_since, differences }: Comparison): string {
  const all = counted(detections, 'detection');
  const changed = `${counted(changed_since, 'detection')} changed after the copy was updated, and ${changed_since === 1 ? 'was' : 'were'} not compared.`;
  const result =
    differences.length === 0
      ? `The copy ${into} matches the service: ${all} compared.`
      : `${differencesText(differences)}\nThe copy ${into} differs from the service: ${counted(differences.length, 'difference')} in ${all}.`;
  return changed_since === 0 ? result : `${result}\n${changed}`;
}

function differencesText(differences: readonly Difference[]): string {
  const shown = table(differences.slice(0, DIFFERENCES_SHOWN_MAX), [
    { title: 'DETECTION', value: ({ id }) => id },
    { title: 'DIFFERENCE', value: ({ kind }) => kind },
    { title: 'COPY', value: ({ copy_version }) => copy_version, align: 'right' },
    { title: 'SERVICE', value: ({ service_version }) => service_version, align: 'right' },
    { title: 'FIELDS', value: ({ fields }) => (fields.length === 0 ? null : fields.join(', ')) },
  ]);
  const more = differences.length - DIFFERENCES_SHOWN_MAX;
  return more > 0 ? `${shown}\nand ${grouped(more)} more; --json lists all of them` : shown;
}

/** Option value: subscription ids. */
function subscriptionsValue(value: string): number[] {
  const numbers = listValue(value).map((item) => wholeNumber(item, 1, NUMBER_MAX));
  const known = numbers.filter((number) => number !== null);
  if (known.length === numbers.length && known.length <= SUBSCRIPTIONS_MAX) return known;
  throw new InvalidArgumentError(
    `Expected at most ${SUBSCRIPTIONS_MAX} comma-separated subscription ids, such as 7001,7002.`,
  );
}

/** The key in a file that contains the key alone, or the document that `key create --json` prints. */
function readKey(path: string): string {
  if (!existsSync(path)) {
    const next = 'Create it, with the API key as its only content.';
    throw new Refused('failed', `there is no key file ${path}. ${next}`);
  }
  const content = readFileSync(path, 'utf8').trim();
  const document = parseJson(content);
  const key = typeof document === 'object' && document !== null && 'key' in document ? document.key : content;
  if (typeof key === 'string' && /^[\w.~+/=-]+$/.test(key)) return key;
  throw new Refused(
    'failed',
    `${path} does not contain an API key: expected the key alone, or the output of key create --json`,
  );
}
