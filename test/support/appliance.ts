/**
 * Runs the real program in its own folder: sets it up with its commands, drops files and reads over HTTP.
 *
 * The program is `dist/main.cjs`, or the executable that WIREWATCH_PROGRAM names (command.ts).
 */
import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach } from 'node:test';
import { addAccount } from '../../src/auth/accounts.ts';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import type { Match } from '../../src/detection/match.ts';
import { writing } from '../../src/store/database.ts';
import { addTestKey, BOTH, openAccess } from './access.ts';
import { type EndedCommand, runToEnd } from './command.ts';
import { fileName, ndjson, newRow, nextWindowMs, type Row } from './export-files.ts';
import { readerOf } from './lab.ts';
import { type LogLine, type RunningProgram, runProgram } from './program.ts';

const LOG_LINES_SHOWN = 60;

/** Fast, and without limits unless a test sets them. */
export const TEST_SETTINGS = {
  WIREWATCH_INGEST_QUIET_MS: '20',
  WIREWATCH_INGEST_TRUNCATED_SECONDS: '0.5',
  WIREWATCH_INGEST_RESCAN_SECONDS: '0.2',
  WIREWATCH_LIMITS_REQUESTS_PER_MINUTE: '1000000',
  WIREWATCH_LIMITS_DAILY_ROWS: '1000000000000',
  WIREWATCH_LIMITS_UNSEEN_KEY_IDS_PER_MINUTE: '1000000',
};

export type Installation = ReturnType<typeof createInstallation>;
/** A run that listens. */
export type Serving = Awaited<ReturnType<Installation['serve']>>;

/** An account with the subscriptions 7001 and 7002 (text only), and a key that reads both; `using` removes it. */
export function createInstallation(settings: Readonly<Record<string, string>> = {}) {
  const root = mkdtempSync(join(tmpdir(), 'wirewatch-test-'));
  const data = join(root, 'data');
  const env = { ...TEST_SETTINGS, ...settings };
  const runs: RunningProgram[] = [];
  /** Starts `serve` without waiting. */
  const begin = (more?: Readonly<Record<string, string>>) => {
    const run = runProgram(['serve', '--data', data, '--port', '0'], { ...env, ...more }, { isKept: true });
    runs.push(run);
    return run;
  };
  const remove = () => {
    // A failed test may have left one running, which would keep the test process alive.
    for (const run of runs) void run.kill();
    rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  };
  return {
    data,
    drop: join(data, 'drop'),
    key: makeAccess(data),
    begin,
    /** Runs a command on the data folder; throws if it fails, unless `anyStatus`. */
    cli(args: readonly string[], { anyStatus = false }: { readonly anyStatus?: boolean } = {}): EndedCommand {
      const result = runToEnd([...args, '--data', data], env);
      const { status, stderr } = result;
      if (status !== 0 && !anyStatus)
        throw new Error(`wirewatch ${args.join(' ')} ended with ${status}: ${stderr}`);
      return result;
    },
    /** Starts `serve`; resolves when it listens. */
    async serve(more?: Readonly<Record<string, string>>) {
      const run = begin(more);
      const url = await run.url();
      return { ...run, url, log: run.log(), get: (path: string) => fetch(`${url}${path}`) };
    },
    remove,
    [Symbol.dispose]: remove,
  };
}

/** Creates the data folder, without the commands for it: starting them takes longer. @returns the key */
function makeAccess(data: string): string {
  const nowMs = Date.now();
  using access = openAccess(data, { create: true });
  return writing(access, () => {
    addAccount(access, { id: 'agency', name: 'Agency' }, nowMs);
    addSubscription(access, { id: 7001, account_id: 'agency' }, nowMs);
    addSubscription(access, { id: 7002, account_id: 'agency', content_types: ['text'] }, nowMs);
    return addTestKey(access, nowMs, { name: 'test', subscriptions: BOTH }).key;
  });
}

export function createKey(cli: Installation['cli'], account: string, subscriptions: string): string {
  const options = ['--account', account, '--subscriptions', subscriptions];
  const made = cli(['key', 'create', ...options, '--name', 'test', '--scopes', 'detections:read', '--json']);
  const { key } = JSON.parse(made.stdout);
  if (typeof key !== 'string') throw new Error('key create --json printed no key');
  return key;
}

/** Adds the account `other` with the subscription 8001. @returns a key that reads it */
export function addOtherAccount(cli: Installation['cli']): string {
  cli(['account', 'add', 'other', '--name', 'Other']);
  cli(['subscription', 'add', '8001', '--account', 'other']);
  return createKey(cli, 'other', '8001');
}

/** A detection as the API shows it. */
export interface Detection extends Match {
  readonly id: string;
  readonly version: number;
  readonly event?: string;
}

/** A page of the change stream. */
export interface ChangesPage {
  readonly data: readonly Detection[];
  readonly next_cursor: string;
  readonly has_more: boolean;
  readonly as_of: string | null;
}

/** A running installation, shared by a test file. */
export type Appliance = Awaited<ReturnType<typeof startAppliance>>;

/** `await using` stops and removes it. */
export async function startAppliance(settings: Readonly<Record<string, string>> = {}) {
  const installation = createInstallation(settings);
  let serving = await installation.serve().catch((error) => {
    installation.remove();
    throw error;
  });
  const returned = new Set<LogLine>();
  const get = (path: string, key = installation.key) =>
    fetch(`${serving.url}${path}`, { headers: { authorization: `Bearer ${key}` } });
  /** Puts a file into the drop folder as a careful writer does: under another name, then renamed. */
  const put = (name: string, content: string | Buffer) => putFile(installation.drop, name, content);
  /** The next log line with an outcome of the file; each is returned once. */
  async function processed(name: string): Promise<LogLine> {
    const outcome = /^file (applied|repeated|failed|refused|held)$/;
    const isNew = (line: LogLine) => outcome.test(line.msg) && line.file === name && !returned.has(line);
    const line = await serving.logged(`the outcome of ${name}`, isNew);
    returned.add(line);
    return line;
  }
  const stop = async () => {
    await serving.stop();
    installation.remove();
  };
  return {
    ...installation,
    ...{ get, put, processed },
    /** The current run. */
    serving: () => serving,
    /** Waits for the first line of the current run with this message, and such members. */
    logged(message: RegExp, members: Readonly<Record<string, unknown>> = {}): Promise<LogLine> {
      const hasAll = (line: LogLine) =>
        Object.entries(members).every(([name, value]) => line[name] === value);
      const what = `${message} ${JSON.stringify(members)}`;
      return serving.logged(what, (line) => message.test(line.msg) && hasAll(line));
    },
    /** The JSON body of a successful response. */
    read: (path: string, key = installation.key) => readerOf(serving.url, key).read(path),
    /** The detection with this id; null if the key cannot read one. */
    async detection(id: string, key?: string): Promise<Detection | null> {
      const response = await get(`/v1/detections/${id}`, key);
      const body = await response.text();
      if (response.status === 404) return null;
      if (response.status !== 200) throw new Error(`/v1/detections/${id}: ${response.status} ${body}`);
      return JSON.parse(body);
    },
    /** `put`, then `processed`. */
    dropped(name: string, content: string | Buffer): Promise<LogLine> {
      put(name, content);
      return processed(name);
    },
    /** Restarts on the same folder. */
    async restart(more?: Readonly<Record<string, string>>): Promise<void> {
      await serving.stop();
      serving = await installation.serve(more);
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** An appliance for all tests of the file that calls this at its top; ends with them, and after a failure shows its log. */
export async function sharedAppliance(settings?: Readonly<Record<string, string>>): Promise<Appliance> {
  const appliance = await startAppliance(settings);
  after(() => appliance.stop());
  // A file whose set-up fails ends before its hooks.
  process.once('exit', appliance.remove);
  showLogOfFailures(appliance.serving);
  return appliance;
}

/** Drops a file with these rows, and waits until it is applied. */
export async function dropRows(run: Pick<RunningProgram, 'logged'>, drop: string, rows: readonly Row[]) {
  const name = fileName('newswire', nextWindowMs());
  putFile(drop, name, ndjson(rows));
  await run.logged(`${name} to be applied`, ({ msg, file }) => msg === 'file applied' && file === name);
}

/** Starts the appliance, has it read a file with these rows, and stops it. */
export async function ingestRows(installation: Installation, rows = [newRow()]): Promise<void> {
  const serving = await installation.serve();
  await dropRows(serving, installation.drop, rows);
  assert.equal(await serving.stop(), 0);
}

export function putFile(drop: string, name: string, content: string | Buffer): void {
  const draft = join(drop, `.${name}`);
  writeFileSync(draft, content);
  renameSync(draft, join(drop, name));
}

/** Prints the program's log after a failed test. Call it once, at the top of a test file. */
export function showLogOfFailures(serving: () => Serving | undefined): void {
  afterEach((context) => {
    if (!('passed' in context) || context.passed === true) return;
    const lines = serving()?.log.slice(-LOG_LINES_SHOWN) ?? [];
    console.error(lines.map((line) => JSON.stringify(line)).join('\n'));
  });
}
