/**
 * `wirewatch lab exam`: correct clients pass, whether they poll or wait, and each wrong one fails only for its own reason
 * (contract: Client procedures, Retry). Clients mostly wait for seconds, so several take the exam at the same time.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { packedText } from '../../src/packed.ts';
import { type Finding, RULES } from '../../src/tools/lab/exam-grades.ts';
import { assertFailed, programCommand, runBeside } from '../support/command.ts';
import { without } from '../support/installed.ts';
import { type Lab, startLab } from '../support/lab.ts';
import { inFolder, runProgram } from '../support/program.ts';
import { testFolder } from '../support/test-folder.ts';
import { compileClient, writeTypedClient } from '../support/typed-client.ts';

type Result = Awaited<ReturnType<typeof exam>>;

/** @param client a command; @param copy another, which prints its copy */
async function exam(lab: Lab, client?: string, copy?: string, ...more: string[]) {
  const options = [...(client ? ['--client', client] : []), ...(copy ? ['--copy', copy] : []), ...more];
  const run = runProgram(['lab', 'exam', '--json', '--data', lab.data, ...options]);
  const code = await run.ended;
  assert.ok(run.stdout().startsWith('{'), `exit code ${code}: ${run.stderr()}`);
  const { passed, findings }: { passed: boolean; findings: Finding[] } = JSON.parse(run.stdout());
  const outcomes: Record<string, string> = Object.fromEntries(
    findings.map(({ rule, outcome }) => [rule, outcome]),
  );
  return { code, passed, findings, outcomes };
}

const failed = ({ findings }: Result) => findings.filter(({ outcome }) => outcome === 'failed');

/** @param otherwise the rules that did not pass, with their outcomes */
function assertPassed(result: Result, otherwise: Readonly<Record<string, string>>): void {
  assert.deepEqual(failed(result), []);
  const passed = Object.fromEntries(Object.keys(RULES).map((rule) => [rule, 'passed']));
  assert.deepEqual(result.outcomes, { ...passed, ...otherwise });
  assert.deepEqual([result.passed, result.code], [true, 0]);
}

/** A shell command that runs in a folder, with the PATH of the tests, since the program may have none. */
function line(folder: string, program: string, ...args: string[]): string {
  const quoted = [program, ...args].map((word) => `'${word}'`).join(' ');
  return `export PATH='${process.env.PATH}'; cd '${folder}'; exec ${quoted}`;
}

const PRINT_COPY = `
const { DatabaseSync } = require('node:sqlite');
const [file, table] = process.argv.slice(2);
for (const { id, version } of new DatabaseSync(file, { timeout: 10_000 }).prepare('SELECT id, version FROM ' + table).iterate())
  console.log(JSON.stringify({ id, version }));
`;

function printCopy(folder: string, file = 'detections.sqlite', table = 'detection'): string {
  writeFileSync(path.join(folder, 'print-copy.cjs'), PRINT_COPY);
  return line(folder, process.execPath, 'print-copy.cjs', file, table);
}

/** A sample client whose first wait is a quarter of a second, so that its exam is short. */
function hastySample(name: 'client-ts' | 'client-py'): string {
  const text = packedText('config', name);
  const hasty = text.replace('FIRST_WAIT = SECOND', 'FIRST_WAIT = SECOND / 4').replace('= 1, 5', '= 0.25, 5');
  assert.notEqual(hasty, text);
  return hasty;
}

/** Gives a test its own lab, and a folder for its client. */
async function withExam(use: (lab: Lab, folder: string) => Promise<void>): Promise<void> {
  const folder = testFolder();
  const lab = await startLab(folder, ['--seed', '7']);
  try {
    await use(lab, folder);
  } finally {
    await lab.run.stop();
  }
}

const noShell = process.platform === 'win32' && 'the commands are for a POSIX shell';
const noPython = without('python3');
/** A change of a source: text, and what takes its place. */
type Change = readonly [from: string, to: string];

const CLIENT = hastySample('client-ts');
const PERIODS = { finishes_periods: 'not_tested' };
/** Makes the sample client poll, with small pages. */
const POLLS: readonly Change[] = [
  ["readChanges('wait=50')", 'readChanges()'],
  ['await sleep(MINUTE);', 'await sleep(SECOND);'],
  ['limit: 1000 }, prefer', 'limit: 5 }, prefer'],
];

/** Wrong clients: the sample client with a few changes, and the rule that it breaks. Every rule: exam-grades.test.ts. */
const WRONG: Readonly<Record<string, { rule: string; changes: readonly Change[] }>> = {
  'stores its cursor at once and its rows later': {
    rule: 'rows_with_cursor',
    changes: [
      ...POLLS,
      ['function store({ data }', 'let late: readonly Detection[] = [];\nfunction store({ data }'],
      ['for (const row of data) upsert', 'for (const row of late) upsert'],
      ['    place();', '    late = data;\n    place();'],
    ],
  },
  'appends rows without a key': {
    rule: 'one_row',
    changes: [
      ['id TEXT PRIMARY KEY, version', 'id TEXT, version'],
      [
        ` ON CONFLICT (id)
  DO UPDATE SET version = excluded.version, body = excluded.body WHERE excluded.version > version`,
        '',
      ],
    ],
  },
  'takes only the next version': {
    rule: 'takes_versions',
    changes: [['excluded.version > version', 'excluded.version = version + 1']],
  },
  'crashes on a cut body while it waits': {
    rule: 'retries',
    changes: [
      [
        'await answer.text();',
        'await answer.text().catch((error) => (prefer === undefined ? Promise.reject(error) : process.exit(1)));',
      ],
    ],
  },
};

function changed(changes: readonly Change[]): string {
  return changes.reduce((text, [from, to]) => {
    assert.equal(text.split(from).length, 2, from);
    return text.replace(from, () => to);
  }, CLIENT);
}

function typescript(folder: string, source: string): string {
  writeFileSync(path.join(folder, 'client.ts'), source);
  return line(folder, process.execPath, 'client.ts');
}

test('the sample client in TypeScript compiles', () =>
  inFolder(async (folder) => {
    writeTypedClient(folder, packedText('config', 'client-ts'));
    await compileClient(folder);
  }));

describe('the exam', { concurrency: 4, skip: noShell }, () => {
  for (const [name, { rule, changes }] of Object.entries(WRONG))
    test(`a client that ${name} fails`, () =>
      withExam(async (lab, folder) => {
        const client = typescript(folder, changed(changes));
        const result = await exam(lab, client, printCopy(folder));
        // What is lost for another reason is also missing in the copy.
        const others = rule === 'rows_with_cursor' ? ['right_copy'] : [];
        const rules = failed(result).flatMap((one) => (others.includes(one.rule) ? [] : [one.rule]));
        assert.deepEqual(rules, [rule], JSON.stringify(failed(result)));
        assert.match(failed(result)[0]?.documentation ?? '', /client-guide: /);
        assert.deepEqual([result.passed, result.code], [false, 1]);
      }));

  test('a client without requests does not finish; a bad copy and a lab that does not run are errors', () =>
    withExam(async (lab, folder) => {
      const silent = await exam(lab, 'true', undefined, '--patience', '1');
      const broken = failed(silent).map(({ rule, detail }) => [rule, detail.split(':', 1)[0]]);
      assert.deepEqual(broken, [['finishes', 'a restart within a period']]);
      const others = Object.entries(silent.outcomes).filter(([rule]) => rule !== 'finishes');
      const outcomes = new Set(others.map(([, outcome]) => outcome));
      assert.deepEqual(outcomes, new Set(['not_tested', 'advice']), 'what was not tested has not passed');
      assert.deepEqual(await lab.control('fault-list'), []);
      const client = `export SINCE=; ${typescript(folder, CLIENT)}`;
      const unreadable = ['lab', 'exam', '--data', lab.data, '--client', client, '--copy', 'echo rows'];
      assertFailed(await runBeside(unreadable), 1, /--copy: line 1: expected one detection a line/);
      assert.equal((await runBeside(['lab', 'exam', '--data', path.join(folder, 'none')])).status, 1);
    }));

  test('the sample client passes, whatever was tried in the lab before', () =>
    withExam(async (lab, folder) => {
      await lab.control('clock', { advance: '26h' });
      await lab.control('allowance');
      await lab.control('fault-add', { status: 503, times: 1000 });
      const client = `export SINCE=; ${typescript(folder, CLIENT)}`;
      assertPassed(await exam(lab, client, printCopy(folder)), {});
    }));

  test('a client that leaves a removed subscription out before it is refused passes', () =>
    withExam(async (lab, folder) => {
      const named =
        "db.prepare('SELECT group_concat(DISTINCT subscription) AS ids FROM stream').get()?.['ids']";
      const asks: Change[] = [
        ['...start, limit: 1000', `...start, subscription_id: String(${named}), limit: 1000`],
        ['while (performance.now() < asked + MINUTE) if', 'if'],
      ];
      const client = typescript(folder, changed([...POLLS.slice(0, 2), ...asks]));
      const result = await exam(lab, client, printCopy(folder));
      assertPassed(result, { ...PERIODS, handles_400: 'not_tested' });
    }));

  test('the sample client in Python passes, as printed', { skip: noPython }, () =>
    withExam(async (lab, folder) => {
      const printed = runProgram(['sample', 'client-py']);
      await printed.ended;
      writeFileSync(path.join(folder, 'client.py'), printed.stdout());
      const client = `export SINCE=; ${line(folder, 'python3', 'client.py')}`;
      assertPassed(await exam(lab, client, printCopy(folder)), {});
    }),
  );

  for (const [how, more] of [
    ['waits', []],
    ['polls', ['--poll-seconds', '1']],
  ] as const)
    test(`a pull that ${how} passes`, () =>
      withExam(async (lab, folder) => {
        writeFileSync(path.join(folder, 'key'), lab.key);
        const pull = ['pull', '--base-url', lab.url, '--key-file', 'key', '--into', 'copy.db', '--follow'];
        const { command, args } = programCommand([...pull, ...(how === 'waits' ? ['--full'] : []), ...more]);
        const since = how === 'waits' ? '' : ' --since "$SINCE"';
        const client = `${line(folder, command, ...args)}${since}`;
        const copy = printCopy(folder, 'copy.db', 'detections');
        assertPassed(await exam(lab, client, copy), how === 'waits' ? {} : PERIODS);
      }));

  test('a pull, run by the user, is graded by its requests', () =>
    withExam(async (lab, folder) => {
      const { now } = await lab.control('clock');
      const since = new Date(Date.parse(now) - 86_400_000).toISOString();
      writeFileSync(path.join(folder, 'key'), lab.key);
      const pull = ['pull', '--base-url', lab.url, '--key-file', path.join(folder, 'key'), '--follow'];
      const { ended } = runProgram([...pull, '--into', path.join(folder, 'copy.db'), '--since', since]);
      const result = await exam(lab);
      assertPassed(result, {
        ...PERIODS,
        ...{ rows_with_cursor: 'not_tested', keeps_versions: 'not_tested', right_copy: 'not_tested' },
        ...{ one_row: 'not_tested', takes_versions: 'not_tested', handles_400: 'not_tested' },
        notices_gaps: result.outcomes.notices_gaps ?? '',
      });
      const { detail = '' } = result.findings.find(({ rule }) => rule === 'keeps_cursor') ?? {};
      assert.match(detail, /without a restart/);
      assert.equal(await ended, 1);
    }));
});
