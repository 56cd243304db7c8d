/** `wirewatch pull`: a client of the API, and an example of one that does it right. */
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { isBaseUrl } from '../config/format.ts';
import { type Api, createApi } from '../pull/api.ts';
import { type Copy, openCopy } from '../pull/copy.ts';
import { catchUp } from '../pull/following.ts';
import { copyAll } from '../pull/full-copy.ts';
import { openLines } from '../pull/lines.ts';
import { Refused } from '../refused.ts';
import { formatMs, SECOND_MS } from '../time.ts';
import { addExamples, commonOptions, instantValue, integerValue } from './options.ts';
import { print, printable, progress } from './output.ts';

const POLL_SECONDS_DEFAULT = 60;

interface PullOptions {
  readonly baseUrl: string;
  readonly keyFile: string;
  readonly into: string;
  readonly full?: boolean;
  readonly since?: number;
  readonly follow?: boolean;
  readonly format?: string;
  readonly pollSeconds?: number;
}

export function register(program: Command): void {
  const command = program
    .command('pull')
    .description('copy detections from a Detection Reporting API into a file, and keep the copy up to date')
    .requiredOption('--base-url <url>', 'address of the service')
    .requiredOption('--key-file <file>', 'file that holds the API key or an access token')
    .requiredOption('--into <file>', 'the copy; one that was begun before is carried on')
    .option('--full', 'copy the whole history first')
    .option(
      '--since <time>',
      'begin with changes delivered at or after this time, at most 31 days ago',
      instantValue,
    )
    .option('--follow', 'go on until stopped, asking again and again')
    .option(
      '--poll-seconds <seconds>',
      `how long to wait when nothing is new (default: ${POLL_SECONDS_DEFAULT})`,
      integerValue(1),
    )
    .option('--format <format>', 'sqlite or ndjson (default: sqlite)')
    .action(async (options: PullOptions, self: Command) => {
      const pulled = await pull(options);
      const text = `${pulled.rows} rows were read into ${options.into}. Run the same command again to go on.`;
      print(pulled, { json: commonOptions(self).json, text });
    });
  addExamples(command, [
    'pull --base-url http://127.0.0.1:8080 --key-file key --into copy.db --full',
    'pull --base-url http://127.0.0.1:8080 --key-file key --into changes.ndjson --format ndjson --follow',
  ]);
}

interface Pulled {
  readonly into: string;
  readonly rows: number;
}

async function pull(options: PullOptions): Promise<Pulled> {
  const stopping = new AbortController();
  const stop = () => stopping.abort(new Stopped());
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  const key = readKey(options.keyFile);
  const copy = open(options);
  const shown = progress('rows');
  let rows = 0;
  const onRows = (read: number) => {
    rows += read;
    shown.update(rows);
  };
  const api = createApi({
    baseUrl: baseUrlOf(options.baseUrl),
    key,
    signal: stopping.signal,
    sleep: (ms) => sleep(ms, undefined, { signal: stopping.signal }),
    onWait: (reason, waitMs) => {
      shown.end();
      process.stderr.write(`${printable(reason)}; waiting ${Math.ceil(waitMs / SECOND_MS)} s\n`);
    },
  });
  try {
    const since = await beginning(api, copy, options, onRows);
    for (;;) {
      await catchUp(api, copy, since, onRows);
      if (options.follow !== true) break;
      await sleep((options.pollSeconds ?? POLL_SECONDS_DEFAULT) * SECOND_MS, undefined, {
        signal: stopping.signal,
      });
    }
  } catch (error) {
    // What was stored is whole, and the same command goes on from there: being stopped is no failure when following.
    if (!stopping.signal.aborted) throw error;
    if (options.follow !== true) process.exitCode = 1;
  } finally {
    shown.end();
    copy.close();
  }
  return { into: options.into, rows };
}

class Stopped extends Error {}

/** @returns where the stream begins for a copy that has no cursor; what is asked of one that has does not matter */
async function beginning(
  api: Api,
  copy: Copy,
  options: PullOptions,
  onRows: (rows: number) => void,
): Promise<string> {
  if (copy.cursor() !== null) {
    if (options.since === undefined) return '';
    throw new Refused(
      'usage',
      `${options.into} was begun already: --since is for a new copy. Leave it out to go on.`,
    );
  }
  if (options.full === true || copy.walk() !== null) {
    if (options.since === undefined) return copyAll(api, copy, onRows);
    throw new Refused('usage', '--full begins with the whole history: leave --since out');
  }
  if (options.since !== undefined) return new Date(options.since).toISOString();
  // The server's clock, not this machine's: a time in the server's future would be refused.
  return formatMs((await api.get('/v1/me')).dateMs);
}

function open(options: PullOptions): Copy {
  const format = options.format ?? 'sqlite';
  if (format === 'sqlite') return openCopy(options.into);
  if (format === 'ndjson') return openLines(options.into);
  throw new Refused('usage', `--format ${format}: expected sqlite or ndjson`);
}

function readKey(path: string): string {
  if (!existsSync(path))
    throw new Refused('failed', `there is no key file ${path}. Put the API key into it, and nothing else.`);
  const key = readFileSync(path, 'utf8').trim();
  if (/^[\w.~+/=-]+$/.test(key)) return key;
  throw new Refused('failed', `${path} does not hold an API key: expected one key and nothing else`);
}

function baseUrlOf(value: string): string {
  if (!isBaseUrl(value))
    throw new Refused('usage', `--base-url ${value}: expected an address such as http://127.0.0.1:8080`);
  return value.replace(/\/+$/, '');
}
