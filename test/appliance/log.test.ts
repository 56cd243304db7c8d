/** The log: lines without secrets, in a file that can be rotated, and what happens when it cannot be written. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { createKey } from '../../src/auth/key-form.ts';
import { createLogOutput, openLogFile } from '../../src/log-output.ts';
import { withoutSecrets } from '../../src/logger.ts';
import { createInstallation, TEST_SETTINGS } from '../support/appliance.ts';
import { assertFailed, runBeside } from '../support/command.ts';
import { linesOf, serve, serving } from '../support/log-lines.ts';
import { inFolder, type RunningProgram, runProgram } from '../support/program.ts';
import { runScript, source } from '../support/scripts.ts';
import { words } from '../support/words.ts';

/** Waits for a line with this message in a log file. */
function lineIn(run: RunningProgram, file: string, msg: string) {
  return run.until(`"${msg}" in ${file}`, () =>
    existsSync(file) && readFileSync(file, 'utf8').endsWith('\n')
      ? linesOf(file).find((line) => line.msg === msg)
      : undefined,
  );
}

test('the reason of a failed start is in the log and on stderr', () =>
  inFolder(async (folder) => {
    const [file, data] = [path.join(folder, 'log'), path.join(folder, 'data')];
    writeFileSync(data, 'no folder');
    const ended = await runBeside(serving(folder), { WIREWATCH_LOG_FILE: file });
    assertFailed(ended, 78, /is a file, not a folder/);
    const last = linesOf(file).at(-1);
    assert.deepEqual([last?.level, last?.msg], ['fatal', 'the appliance cannot start']);
    assert.match(JSON.stringify(last), /is a file, not a folder/);
  }));

test('lines are appended as JSON, and nothing is on stderr', () =>
  inFolder(async (folder) => {
    const file = path.join(folder, 'wirewatch.log');
    for (const starts of [1, 2]) {
      const run = serve(folder, file);
      const listening = () => linesOf(file).filter(({ msg }) => msg === 'listening');
      await run.until('a start', () => listening().at(starts - 1));
      assert.equal(await run.stop(), 0);
      assert.equal(run.stderr(), '');
    }
    assert.equal(linesOf(file).filter(({ msg }) => msg === 'stopped').length, 2);
    // Only the owner may write the log, and only the group may also read it.
    assert.equal(statSync(file).mode & 0o137, 0);
  }));

test('external names cannot inject control characters into a terminal or --json', () =>
  inFolder(async (folder) => {
    const file = path.join(folder, 'wirewatch.log');
    const [data, drop] = [path.join(folder, 'data'), path.join(folder, 'data', 'drop')];
    mkdirSync(drop, { recursive: true });
    const name = 'evil\u009b2J\u0085\u007f\u202e\u001b[2J';
    writeFileSync(path.join(drop, name), 'x');
    await using run = serve(folder, file);
    const line = await lineIn(run, file, 'file refused');
    const status = await runBeside(['ingest', 'status', '--json', '--data', data]);
    assert.equal(status.status, 0, status.stderr);
    for (const shown of [readFileSync(file, 'utf8'), status.stdout]) {
      assert.doesNotMatch(shown, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
      assert.ok(shown.includes('evil\\u009b2J\\u0085\\u007f\\u202e\\u001b[2J'), shown);
    }
    // The log contains the original name.
    assert.ok(JSON.stringify(line).includes(JSON.stringify(name).slice(1, -1)));
  }));

test('rename and HUP under load, as logrotate does: each request is in exactly one file', async () => {
  using installation = createInstallation();
  await inFolder(async (folder) => {
    const file = path.join(folder, 'wirewatch.log');
    const args = ['serve', '--data', installation.data, '--port', '0'];
    const run = runProgram(args, { ...TEST_SETTINGS, WIREWATCH_LOG_FILE: file });
    const { url } = await lineIn(run, file, 'listening');
    const headers = { authorization: `Bearer ${installation.key}` };
    const asked: string[] = [];
    let isOver = false;
    const clients = Array.from({ length: 4 }, async () => {
      while (!isOver) {
        const answer = await fetch(`${url}/v1/me`, { headers });
        await answer.arrayBuffer();
        asked.push(answer.headers.get('x-request-id') ?? '');
      }
    });
    const rotated: string[] = [];
    for (let turn = 1; turn <= 5; turn += 1) {
      const before = asked.length;
      await run.until('requests', () => asked.length > before + 50 || undefined);
      rotated.push(`${file}.${turn}`);
      renameSync(file, `${file}.${turn}`);
      run.kill('SIGHUP');
      await run.until('the new file', () => existsSync(file) || undefined);
    }
    isOver = true;
    await Promise.all(clients);
    assert.equal(await run.stop(), 0);
    const logged = [...rotated, file].flatMap((one) => linesOf(one)).map((line) => line.request_id);
    assert.deepEqual(logged.filter((id) => id !== undefined).sort(), asked.sort());
    assert.ok(linesOf(file).length > 0);
  });
});

test('if a new file cannot be opened, it continues in the open one and says so', () =>
  inFolder(async (folder) => {
    const logs = path.join(folder, 'logs');
    mkdirSync(logs);
    const run = serve(folder, path.join(logs, 'wirewatch.log'));
    await lineIn(run, path.join(logs, 'wirewatch.log'), 'listening');
    renameSync(logs, path.join(folder, 'moved'));
    run.kill('SIGHUP');
    const moved = path.join(folder, 'moved', 'wirewatch.log');
    await lineIn(run, moved, 'cannot reopen the log file: lines still go to the previous file');
    assert.equal(await run.stop(), 0);
    assert.equal(linesOf(moved).at(-1)?.msg, 'stopped');
  }));

test('a file that cannot be opened fails the start, with a hint', () =>
  inFolder(async (folder) => {
    const pipe = path.join(folder, 'pipe');
    const cases = [path.join(folder, 'absent', 'wirewatch.log'), folder];
    if (spawnSync('mkfifo', [pipe]).status === 0) cases.push(pipe);
    for (const file of cases) {
      const why = new RegExp(`^wirewatch: \\[log\\] file: cannot open ${file}: .*Create its folder`, 's');
      assertFailed(await runBeside(serving(folder), { WIREWATCH_LOG_FILE: file }), 78, why);
    }
  }));

test("a request's line equals pino's, and is omitted below the log level", () => {
  const code = `import { createLogger, logInfo } from ${source('logger.ts')};
    const text = '\\u0000\\u001b"\\\\\\ud800\\u2028é' + String.fromCodePoint(0x1f600) + 'x'.repeat(200);
    const fields = { request_id: 'r', path: text, status: 200, rows: 0, code: undefined, duration_ms: 0.125 };
    for (const level of ['info', 'warn', 'silent']) {
      const log = createLogger({ level });
      log.info(fields, 'request');
      logInfo(log, fields, 'request');
    }`;
  const { status, stderr } = runScript(code);
  assert.equal(status, 0, stderr);
  const lines = stderr.split('\n').map((line) => line.replace(/"time":"[\d-]{10}T[\d:.]{12}Z"/, '"time":T'));
  assert.equal(lines.length, 3, stderr);
  assert.equal(lines[1], lines[0]);
  assert.match(lines[0] ?? '', /^\{"level":"info","time":T,"request_id":"r",.*,"msg":"request"\}$/);
});

test('SIGHUP without a file changes nothing', () =>
  inFolder(async (folder) => {
    await using run = serve(folder);
    const url = await run.url();
    run.kill('SIGHUP');
    assert.equal((await fetch(`${url}/v1/nowhere`)).status, 404);
  }));

const FULL = '/dev/full';

const noFullDevice = !existsSync(FULL) && 'there is no /dev/full';

/** An output that goes to this file, with its failures, and how many lines were lost each time. */
function outputTo(path: string) {
  const [failures, lost]: [string[], number[]] = [[], []];
  const output = createLogOutput(
    openLogFile(path),
    ({ message }) => failures.push(message),
    (lines) => {
      lost.push(lines);
      output.write(`${lines} lost\n`);
    },
  );
  const flushed = () => new Promise<void>((resolve) => output.flush(resolve));
  return { output, failures, lost, flushed };
}

describe('when it cannot be written', { skip: noFullDevice }, () => {
  test('a log file on a full disk stops nothing, and stderr reports it', () =>
    inFolder(async (folder) => {
      const run = serve(folder, FULL);
      const complaint = `wirewatch: cannot write to the log file ${FULL}: ENOSPC`;
      await run.until('the complaint', () => run.stderr().startsWith(complaint) || undefined);
      const address = path.join(folder, 'data', 'address');
      await run.until('its address', () => existsSync(address) || undefined);
      // Once it responds, it also handles signals.
      await (await fetch(`${readFileSync(address, 'utf8').split('\n')[0]}/v1/health`)).text();
      assert.equal(await run.stop(), 0);
      assert.equal(run.stderr().split('\n').length, 2, run.stderr());
    }));

  test('waiting lines are written once possible, and dropped ones are counted', () =>
    inFolder(async (folder) => {
      const file = path.join(folder, 'log');
      const { output, failures, lost, flushed } = outputTo(FULL);
      const line = `${'x'.repeat(1023)}\n`;
      output.write(line);
      await flushed();
      for (let count = 0; count < 1100; count += 1) output.write(line);
      await flushed();
      assert.equal(failures.length, 1);
      output.switchTo(openLogFile(file));
      await flushed();
      // The first line was being written, and as many as the buffer allows were waiting.
      assert.deepEqual(lost, [1100 - 1024]);
      assert.equal(readFileSync(file, 'utf8'), `${line.repeat(1025)}76 lost\n`);
      output.write('afterwards\n');
      await flushed();
      assert.ok(readFileSync(file, 'utf8').endsWith('\nafterwards\n'));
      assert.equal(failures.length, 1);
      rmSync(file);
    }));

  test('a pipe without a reader is a failure like others: later lines go to the next file', () =>
    inFolder(async (folder) => {
      const [pipe, file] = [path.join(folder, 'pipe'), path.join(folder, 'log')];
      spawnSync('mkfifo', [pipe]);
      const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
      const { output, failures, flushed } = outputTo(pipe);
      closeSync(reader);
      output.write('a line\n');
      await flushed();
      assert.equal(failures.length, 1);
      assert.match(failures[0] ?? '', /EPIPE/);
      output.switchTo(openLogFile(file));
      output.write('another\n');
      await flushed();
      assert.equal(readFileSync(file, 'utf8'), 'a line\nanother\n');
    }));

  test('does not delay the end of the process', () => {
    const code = `import { createLogger } from ${source('logger.ts')};
      createLogger({ level: 'info' }).info('a line');
      process.exit(3);`;
    const stderr = openSync(FULL, 'w');
    const { status } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], {
      stdio: ['ignore', 'ignore', stderr],
      timeout: 60_000,
    });
    closeSync(stderr);
    assert.equal(status, 3);
  });
});

const { key } = createKey('ww');

const written = (fields: Record<string, unknown>) => JSON.stringify(withoutSecrets(fields));

test('a field with a secret name has no value', () => {
  const names = 'authorization Authorization x-api-key clientSecret access_token signature password';
  for (const name of words(names))
    for (const fields of [{ [name]: key }, { headers: { [name]: key } }, { list: [{ [name]: 7 }] }]) {
      const line = written(fields);
      assert.match(line, /\[redacted\]/, name);
      assert.ok(!line.includes(key) && !line.includes('7'), name);
    }
  const harmless = { key_id: 'abc', secret: null, token: true };
  assert.equal(written(harmless), JSON.stringify(harmless));
});

test('a string, also in a list, has no credential and no signature', () => {
  const texts = [
    `Authorization: Bearer ${key}`,
    `basic ${btoa(key)}`,
    `GET /photos/1?signature=${key}&x=1`,
    `https://example.com/?client_secret=${key}`,
    `https://user:${key}@example.com/`,
  ];
  for (const text of texts)
    for (const value of [text, [text], { deep: { deeper: [text] } }]) {
      const line = written({ value });
      assert.match(line, /\[redacted\]/, text);
      assert.ok(!line.includes(key) && !line.includes(btoa(key)), text);
    }
});

test('an error has none in its message, stack and causes', () => {
  const secret = `Bearer ${key}`;
  const inMessage = new Error(`refused: ${secret}`);
  const inStack = new Error('refused');
  inStack.stack = `Error: refused\n    at ${secret}`;
  const below = new Error('below', { cause: { authorization: key, text: secret } });
  const inCause = new Error('refused', { cause: below });
  for (const err of [inMessage, inStack, inCause]) {
    const line = written({ err });
    assert.match(line, /\[redacted\]/);
    assert.ok(!line.includes(key), line);
  }
});

test('a log line is JSON on stderr with level, time and msg, written also when the process exits at once', () => {
  const end = runScript(
    `import { createLogger } from ${source('logger.ts')};
     const log = createLogger({ level: 'info' });
     log.debug('unseen');
     log.info({ url: 'http://127.0.0.1:1' }, 'listening');
     log.warn({ token: 'S3CRET', id: 7, headers: { Authorization: 'S3CRET' } }, 'x');
     log.error(Object.assign(new Error('no'), { code: 'EIO', secret: 'S3CRET', cause: new Error('why') }), 'failed');
     process.exit(3);`,
  );
  assert.deepEqual([end.status, end.stdout], [3, '']);
  assert.ok(!end.stderr.includes('S3CRET'), end.stderr);
  const lines = end.stderr.trimEnd().split('\n');
  assert.equal(lines.length, 3);
  const [listening, warned, failed] = lines.map((line) => JSON.parse(line));
  assert.deepEqual(Object.keys(listening), ['level', 'time', 'url', 'msg']);
  assert.deepEqual([listening.level, listening.msg], ['info', 'listening']);
  assert.match(listening.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.deepEqual([warned.id, warned.token, warned.headers.Authorization], [7, '[redacted]', '[redacted]']);
  assert.deepEqual(Object.keys(failed.err), ['type', 'message', 'code', 'stack', 'cause']);
  assert.deepEqual([failed.err.code, failed.err.cause.message, failed.msg], ['EIO', 'why', 'failed']);
});
