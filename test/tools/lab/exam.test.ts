/**
 * `wirewatch lab exam`: correct clients pass, and each wrong one fails only for its own reason (contract: Client
 * procedures, Retry). Clients mostly wait for seconds, so several take the exam at the same time.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { openApiDocument } from '../../../src/openapi/document.ts';
import { programCommand, runBeside } from '../../support/command.ts';
import { type Lab, startLab, withLab } from '../../support/lab.ts';
import { example } from '../../support/manual.ts';
import { inFolder, runProgram } from '../../support/program.ts';
import { compileTypedClient, writeTypedClient } from '../../support/typed-client.ts';

/** A client typed from the OpenAPI document that follows every rule. */
const CLIENT = `
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import createClient from 'openapi-fetch';
import type { components, operations, paths } from './api.ts';

type Page = components['schemas']['ChangesPage'];
type Query = operations['listChanges']['parameters']['query'];

const { BASE_URL = '', KEY = '', SINCE = '' } = process.env;
const service = createClient<paths>({ baseUrl: BASE_URL, headers: { Authorization: \`Bearer \${KEY}\` } });
const db = new DatabaseSync('detections.sqlite');
db.exec('CREATE TABLE IF NOT EXISTS detection (id TEXT PRIMARY KEY, version INTEGER)');
db.exec('CREATE TABLE IF NOT EXISTS state (one INTEGER PRIMARY KEY CHECK (one = 1), cursor TEXT)');
const insert = db.prepare(
  'INSERT INTO detection VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET version = excluded.version WHERE excluded.version > version',
);
const keep = db.prepare('INSERT OR REPLACE INTO state VALUES (1, ?)');

async function call(query: Query): Promise<Page> {
  for (let wait = 1; ; wait = Math.min(wait * 2, 300)) {
    let pause = wait;
    try {
      const { data, error, response } = await service.GET('/v1/detections/changes', { params: { query } });
      if (data !== undefined) return data;
      if (![429, 500, 502, 503, 504].includes(response.status)) {
        console.error(error?.detail);
        process.exit(1);
      }
      pause = Number(response.headers.get('Retry-After') ?? wait);
    } catch {
      // no answer, or only a part of one
    }
    await sleep(pause * 1000);
  }
}

const me = await service.GET('/v1/me');
for (const gap of me.data?.data_gaps.text ?? []) console.error('gap', gap.window_start, gap.status);

const rows: Page['data'] = [];
let known = db.prepare('SELECT cursor FROM state').get()?.['cursor'];
for (let more = true; more; ) {
  const page = await call({ limit: 1000, ...(typeof known === 'string' ? { cursor: known } : { since: SINCE }) });
  db.exec('BEGIN');
  for (const { id, version } of page.data) insert.run(id, version);
  keep.run(page.next_cursor);
  db.exec('COMMIT');
  known = page.next_cursor;
  more = page.has_more;
}
`;

/** Wrong clients: the correct one with one change. One is seen by its requests, one by its copy; exam-grades has all rules. */
const WRONG: readonly [name: string, right: string, instead: string, rule: string][] = [
  [
    'hammers after 429',
    `pause = Number(response.headers.get('Retry-After') ?? wait);`,
    `pause = response.status === 429 ? 0.2 : Number(response.headers.get('Retry-After') ?? wait);`,
    'waits_as_told',
  ],
  [
    'stores its cursor at once and its rows at the end',
    `for (const { id, version } of page.data) insert.run(id, version);
  keep.run(page.next_cursor);
  db.exec('COMMIT');
  known = page.next_cursor;
  more = page.has_more;
}`,
    `keep.run(page.next_cursor);
  db.exec('COMMIT');
  rows.push(...page.data);
  known = page.next_cursor;
  more = page.data.length > 0 || page.has_more;
}
for (const { id, version } of rows) insert.run(id, version);`,
    'rows_with_cursor',
  ],
];

const PRINT_COPY = `
const { DatabaseSync } = require('node:sqlite');
const [file, table] = process.argv.slice(2);
for (const { id, version } of new DatabaseSync(file, { timeout: 10_000 }).prepare('SELECT id, version FROM ' + table).iterate())
  console.log(JSON.stringify({ id, version }));
`;

interface Result {
  readonly code: number | null;
  readonly passed: boolean;
  readonly outcomes: Readonly<Record<string, string>>;
  readonly findings: readonly {
    readonly rule: string;
    readonly outcome: string;
    readonly detail: string;
    readonly documentation: string;
    readonly requests: readonly number[];
  }[];
}

async function exam(
  lab: Lab,
  args: readonly string[],
  settings: Record<string, string> = {},
): Promise<Result> {
  const run = runProgram(['lab', 'exam', '--json', '--data', lab.data, ...args], settings);
  const code = await run.ended;
  assert.ok(run.stdout().startsWith('{'), `exit code ${code}: ${run.stderr()}`);
  const { passed, findings } = JSON.parse(run.stdout());
  const outcomes = findings.map(({ rule, outcome }: { rule: string; outcome: string }) => [rule, outcome]);
  return { code, passed, findings, outcomes: Object.fromEntries(outcomes) };
}

const failed = ({ findings }: Result) => findings.filter(({ outcome }) => outcome === 'failed');

/** A shell command that runs in a folder, with the PATH of the tests, since the program may have none. */
function line(folder: string, program: string, ...args: string[]): string {
  const quoted = [program, ...args].map((word) => `'${word}'`).join(' ');
  return `export PATH='${process.env.PATH}'; cd '${folder}'; ${quoted}`;
}

function printCopy(folder: string, file: string, table: string): string {
  writeFileSync(path.join(folder, 'print-copy.cjs'), PRINT_COPY);
  return line(folder, process.execPath, 'print-copy.cjs', file, table);
}

function writeClient(folder: string, source: string): string {
  writeTypedClient(folder, source);
  return line(folder, process.execPath, 'client.ts');
}

/** A folder for the client, and a lab. Does not use inFolder, which would end programs of concurrent tests. */
async function withExam(use: (lab: Lab, folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), 'wirewatch-exam-'));
  const own = path.join(folder, 'client');
  mkdirSync(own);
  try {
    await withLab(folder, ['--seed', '7'], (lab) => use(lab, own));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const ALL_PASSED = {
  finishes: 'passed',
  retries: 'passed',
  waits_as_told: 'passed',
  doubles_waits: 'passed',
  keeps_cursor: 'passed',
  follows_has_more: 'passed',
  rows_with_cursor: 'passed',
  keeps_versions: 'passed',
  handles_401: 'passed',
  notices_gaps: 'passed',
  right_copy: 'passed',
};

function assertPassed(result: Result, otherwise: Readonly<Record<string, string>> = {}): void {
  assert.deepEqual(failed(result), []);
  assert.deepEqual(result.outcomes, { ...ALL_PASSED, ...otherwise });
  assert.deepEqual([result.passed, result.code], [true, 0]);
}

const noShell = process.platform === 'win32' && 'the commands are for a POSIX shell';
const noPython = spawnSync('python3', ['--version']).status !== 0 && 'python3 is not installed';

describe('the exam', { concurrency: 4, skip: noShell }, () => {
  test('a client typed by openapi-fetch compiles and passes, even if storing a page takes a second', () =>
    withExam(async (lab, folder) => {
      const slow = CLIENT.replace("db.exec('BEGIN');", "await sleep(1000);\n  db.exec('BEGIN');");
      assert.notEqual(slow, CLIENT);
      const client = writeClient(folder, slow);
      await compileTypedClient(folder, JSON.stringify(openApiDocument()));
      const copy = printCopy(folder, 'detections.sqlite', 'detection');
      assertPassed(await exam(lab, ['--client', client, '--copy', copy]));
    }));

  test("the manual's Python client passes", { skip: noPython }, () =>
    withExam(async (lab, folder) => {
      writeFileSync(path.join(folder, 'client.py'), example('change-stream', 'python-client'));
      const copy = printCopy(folder, 'detections.sqlite', 'detection');
      const result = await exam(lab, ['--client', line(folder, 'python3', 'client.py'), '--copy', copy]);
      assertPassed(result, { notices_gaps: 'advice' });
    }),
  );

  test('pull passes', () =>
    withExam(async (lab, folder) => {
      writeFileSync(path.join(folder, 'key'), lab.key);
      const pull = ['pull', '--base-url', lab.url, '--key-file', 'key', '--into', 'copy.db'];
      const { command, args } = programCommand([...pull, '--follow', '--poll-seconds', '1']);
      // Only a new copy accepts --since.
      const client = `${line(folder, command, ...args)} $(test -e copy.db || echo --since "$SINCE")`;
      const copy = printCopy(folder, 'copy.db', 'detections');
      // Whatever was tried before.
      await lab.control('clock', { advance: '26h' });
      await lab.control('allowance');
      await lab.control('fault-add', { status: 503, times: 1000 });
      const result = await exam(lab, ['--client', client, '--copy', copy]);
      assertPassed(result, { notices_gaps: result.outcomes.notices_gaps ?? '' });
    }));

  for (const [name, right, instead, rule] of WRONG)
    test(`a client that ${name} fails`, () =>
      withExam(async (lab, folder) => {
        assert.ok(CLIENT.includes(right));
        const client = writeClient(folder, CLIENT.replace(right, instead));
        const copy = printCopy(folder, 'detections.sqlite', 'detection');
        const result = await exam(lab, ['--client', client, '--copy', copy]);
        const [first] = failed(result);
        // Lost rows are also missing in the final copy.
        const others = rule === 'rows_with_cursor' ? ['right_copy'] : [];
        assert.deepEqual(
          failed(result).flatMap((one) => (others.includes(one.rule) ? [] : [one.rule])),
          [rule],
          JSON.stringify(failed(result)),
        );
        assert.match(first?.documentation ?? '', /client-guide: /);
        const isOfCopy = rule === 'rows_with_cursor';
        assert.ok(isOfCopy || (first?.requests.length ?? 0) > 0);
        assert.deepEqual([result.passed, result.code], [false, 1]);
      }));

  test('a client that the user runs is graded by its requests', () =>
    withExam(async (lab, folder) => {
      writeFileSync(path.join(folder, 'key'), lab.key);
      const pull = ['pull', '--base-url', lab.url, '--key-file', path.join(folder, 'key')];
      const since = new Date(Date.now() - 86_400_000).toISOString();
      const into = [
        '--into',
        path.join(folder, 'copy.db'),
        '--since',
        since,
        '--follow',
        '--poll-seconds',
        '1',
      ];
      const client = runProgram([...pull, ...into]);
      const result = await exam(lab, []);
      assertPassed(result, {
        rows_with_cursor: 'not_tested',
        keeps_versions: 'not_tested',
        right_copy: 'not_tested',
        notices_gaps: result.outcomes.notices_gaps ?? '',
      });
      assert.match(
        result.findings.find(({ rule }) => rule === 'keeps_cursor')?.detail ?? '',
        /without a restart/,
      );
      assert.equal(await client.ended, 1);
    }));

  test('a client without requests does not finish; an unreadable copy ends the exam', () =>
    withExam(async (lab, folder) => {
      const result = await exam(lab, ['--client', 'true', '--patience', '1']);
      assert.deepEqual(
        failed(result).map(({ rule, detail }) => [rule, detail.split(':', 1)[0]]),
        [['finishes', 'the first pages, one of them empty']],
      );
      assert.deepEqual(await lab.control('fault-list'), []);
      const client = writeClient(folder, CLIENT);
      const run = await runBeside([
        'lab',
        'exam',
        '--data',
        lab.data,
        '--client',
        client,
        '--copy',
        'echo rows',
      ]);
      assert.equal(run.status, 1);
      assert.match(run.stderr, /--copy: line 1: expected one detection a line/);
    }));
});

test('the exam needs a running lab', async () => {
  await inFolder(async (folder) => {
    const lab = await startLab(folder);
    await lab.stop();
    const run = await runBeside(['lab', 'exam', '--data', lab.data]);
    assert.equal(run.status, 1);
    assert.match(run.stderr, /no lab runs in/);
  });
});
