/** The programs of the manual's page "Testing your client", exactly as printed, against a lab. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { packedText } from '../../src/packed.ts';
import { RULES } from '../../src/tools/lab/exam-grades.ts';
import { without } from '../support/installed.ts';
import { follow, sharedLab } from '../support/lab.ts';
import { example, tableRows, topic } from '../support/manual.ts';
import { inFolder } from '../support/program.ts';

const TOPIC = 'testing-your-client';
const WITH_CURL = { skip: without('curl') };

const lab = await sharedLab(['--seed', '7', '--clock', '2026-11-21T12:00Z']);

/** @returns the exit code and the output */
async function run(folder: string, program: string, args: readonly string[]) {
  const env = { PATH: process.env.PATH, LAB: lab.url, KEY: lab.key };
  const child = spawn(program, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, stdout, stderr };
}

test("the manual's first calls find the data of a lab", WITH_CURL, () =>
  inFolder(async (folder) => {
    const called = async (of: string, name: string, more = '') => {
      const calls = example(of, name).replaceAll('http://127.0.0.1:8080', lab.url);
      const script = `${more}\n${calls.replace('wait=50', 'wait=1')}`;
      const { code, stdout, stderr } = await run(folder, 'sh', ['-ec', script]);
      assert.deepEqual([code, stderr], [0, '']);
      return JSON.parse(stdout);
    };
    const me = await called('client-guide', 'first-call');
    assert.ok(me.subscriptions.length > 0, JSON.stringify(me));
    for (const topicName of ['change-stream', 'periods']) {
      const { data } = await called(topicName, 'first-page');
      assert.ok(Array.isArray(data) && data.length > 0, topicName);
    }
    const { cursor } = await follow(lab, 'since=2026-11-21T10:00:00Z');
    const nothing = await called('change-stream', 'wait', `CURSOR=${cursor}`);
    assert.deepEqual([nothing.data, nothing.has_more], [[], false]);
  }),
);

test('with curl', WITH_CURL, () =>
  inFolder(async (folder) => {
    const { code, stdout, stderr } = await run(folder, 'sh', ['-ec', example(TOPIC, 'curl')]);
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /HTTP\/1.1 503 /);
    assert.match(stdout, /^X-Wirewatch-Lab: f\d+\r$/m);
    assert.match(stdout, /"type":"[^"]*\/errors\/unavailable"/);
    assert.match(stdout, /"files":\[\{"file":"newswire\./);
    assert.match(stdout, /"id":"f\d+","status":429,"retry_after":7/);
    assert.match(stdout, /"requests":\[\{"number":1,.*"path":"\/v1\/me"/);
    await lab.control('fault-clear');
  }),
);

const WITH_PYTEST = { skip: without('python3 -m pytest') };
test('with pytest, the tests pass, and catch a client that waits too little', WITH_PYTEST, () =>
  inFolder(async (folder) => {
    const client = packedText('config', 'client-py');
    writeFileSync(path.join(folder, 'test_client.py'), example(TOPIC, 'pytest'));
    writeFileSync(path.join(folder, 'client.py'), client);
    const pytest = ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', 'test_client.py'];
    const right = await run(folder, 'python3', pytest);
    assert.equal(right.code, 0, right.stdout + right.stderr);
    assert.match(right.stdout, /2 passed/);
    const hasty = client.replace('time.sleep(pause)', 'time.sleep(0.1)');
    assert.notEqual(hasty, client);
    writeFileSync(path.join(folder, 'client.py'), hasty);
    const wrong = await run(folder, 'python3', pytest);
    assert.match(wrong.stdout, /1 failed, 1 passed/);
  }),
);

test('the rules of the exam are those of the program, and name sections of the manual', () => {
  const [, exam = ''] = topic(TOPIC).split('\n## The exam\n');
  const rules = Object.values(RULES);
  const listed = tableRows(exam).map(([rule = '']) => rule.replaceAll('`', ''));
  const meant = rules.map(([means]) => means);
  assert.deepEqual(listed, meant);
  for (const [, documentation] of rules)
    for (const reference of documentation.split('; ')) {
      const [name = '', heading = ''] = reference.split(': ');
      assert.match(topic(name), new RegExp(`^##+ ${heading}$`, 'm'), reference);
    }
});

test('LAB and KEY are set as the page says', WITH_CURL, () =>
  inFolder(async (folder) => {
    writeFileSync(path.join(folder, 'key.txt'), `${lab.key}\n`);
    const code = example(TOPIC, 'exports').replace('http://127.0.0.1:8080', lab.url);
    const script = `unset LAB KEY\n${code}\ncurl -sSf -H "Authorization: Bearer $KEY" "$LAB/v1/me"`;
    const { code: status, stderr } = await run(folder, 'sh', ['-euc', script]);
    assert.deepEqual([status, stderr], [0, '']);
  }),
);
