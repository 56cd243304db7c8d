/** The log: for people on a terminal, in a file that can be rotated, and where it cannot be written. */
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
import { pathToFileURL } from 'node:url';
import { createKey } from '../../src/auth/key.ts';
import { LogOutput, openLogFile } from '../../src/log-output.ts';
import { inFolder, type RunningProgram, runProgram } from '../support/program.ts';
import { onTerminal, terminalMissing } from '../support/terminal.ts';

const FULL = '/dev/full';
const COLOUR = /\u001b\[\d+m/;
const NO_LIMITS = {
  WIREWATCH_LIMITS_REQUESTS_PER_MINUTE: '1000000',
  WIREWATCH_LIMITS_UNSEEN_KEY_IDS_PER_MINUTE: '1000000',
};
const noFullDevice = !existsSync(FULL) && 'there is no /dev/full';
const source = (file: string) =>
  JSON.stringify(pathToFileURL(path.join(import.meta.dirname, '..', '..', 'src', file)).href);

/** Starts `serve` in a folder; with `[log] file` where one is named. */
function serve(folder: string, file = '', more: Readonly<Record<string, string>> = {}): RunningProgram {
  const settings = { ...NO_LIMITS, WIREWATCH_INGEST_RESCAN_SECONDS: '0.2', ...more };
  return runProgram(serving(folder), file === '' ? settings : { ...settings, WIREWATCH_LOG_FILE: file });
}

function serving(folder: string): string[] {
  return ['serve', '--data', path.join(folder, 'data'), '--port', '0'];
}

function serveOnTerminal(folder: string, more: Readonly<Record<string, string>> = {}): RunningProgram {
  return runProgram(serving(folder), { TERM: 'xterm-256color', ...more }, { through: onTerminal });
}

interface Line {
  readonly level: string;
  readonly msg: string;
  readonly url?: string;
  readonly request_id?: string;
}

function linesOf(file: string): Line[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  assert.equal(lines.pop(), '', `${file} ends within a line`);
  return lines.map((line) => JSON.parse(line));
}

/** Waits until a line says so, in a file that may be about to be written. */
function lineIn(run: RunningProgram, file: string, msg: string): Promise<Line> {
  return run.until(`"${msg}" in ${file}`, () =>
    existsSync(file) && readFileSync(file, 'utf8').endsWith('\n')
      ? linesOf(file).find((line) => line.msg === msg)
      : undefined,
  );
}

describe('on a terminal', { skip: terminalMissing }, () => {
  test('lines are for people: time, level, what, and the address to open', async () => {
    await inFolder(async (folder) => {
      const run = serveOnTerminal(folder);
      const plain = () => run.printed().replaceAll(/\u001b\[\d+m/g, '');
      const [, url] = await run.until(
        'its address',
        () =>
          /^\[\d\d:\d\d:\d\d \S+\] INFO: listening \{"url":"(http:\/\/127\.0\.0\.1:\d+)",/m.exec(plain()) ??
          undefined,
      );
      assert.equal((await fetch(`${url}/v1/nowhere`)).status, 404);
      await run.until('the request', () => /INFO: request \{/.exec(plain()) ?? undefined);
      assert.match(run.printed(), COLOUR);
      assert.equal(run.told(), '');
      run.kill('SIGTERM');
      assert.equal(await run.ended, 0);
      assert.match(plain(), /INFO: stopped\s*$/);
    });
  });

  test('NO_COLOR is obeyed', async () => {
    await inFolder(async (folder) => {
      const run = serveOnTerminal(folder, { NO_COLOR: '1' });
      await run.until('its address', () => /listening/.exec(run.printed()) ?? undefined);
      run.kill('SIGTERM');
      await run.ended;
      assert.doesNotMatch(run.printed(), COLOUR);
    });
  });

  test('names from outside cannot steer it', async () => {
    await inFolder(async (folder) => {
      const drop = path.join(folder, 'data', 'drop');
      mkdirSync(drop, { recursive: true });
      writeFileSync(path.join(drop, 'evil\u001b[2J\u009b2J\u202e\\u001b[2J'), 'x');
      const run = serveOnTerminal(folder, { NO_COLOR: '1' });
      await run.until('the refusal', () => /file refused \{.*\}/.exec(run.printed()) ?? undefined);
      run.kill('SIGTERM');
      await run.ended;
      assert.doesNotMatch(run.printed(), /[\u001b\u009b\u202e]/);
      assert.ok(run.printed().includes('evil\\u001b[2J\\u009b2J\\u202e'), run.printed());
    });
  });

  test('secrets are blotted out there as well', async () => {
    const code = `import { openLog } from ${source('log.ts')};
      const terminal = { beforeLine() {} };
      const { log, kind } = await openLog({ level: 'info', file: '', terminal });
      log.child({ token: 'S3CRET' }).info({ kind, headers: { Authorization: 'S3CRET' } }, 'a line');`;
    const [program, args] = onTerminal(process.execPath, ['--input-type=module', '--eval', code]);
    const env = { PATH: process.env.PATH, NO_COLOR: '1' };
    const { stdout } = spawnSync(program, args, { encoding: 'utf8', env });
    assert.match(stdout, /INFO: a line \{.*"kind":"terminal"/);
    assert.match(stdout, /redacted/);
    assert.doesNotMatch(stdout, /S3CRET/);
  });

  test('its end ends the appliance, in order', async () => {
    await inFolder(async (folder) => {
      const run = serveOnTerminal(folder);
      await run.until('its address', () => /listening/.exec(run.printed()) ?? undefined);
      run.kill('SIGUSR1');
      assert.equal(await run.ended, 0);
    });
  });

  test('with a file it still says where it listens, and where the log is', async () => {
    await inFolder(async (folder) => {
      const file = path.join(folder, 'wirewatch.log');
      const run = serveOnTerminal(folder, { WIREWATCH_LOG_FILE: file });
      await run.until('both', () =>
        run.printed().includes(`; the log is in ${file}`) &&
        run.printed().includes('listening on http://127.0.0.1:')
          ? true
          : undefined,
      );
      run.kill('SIGTERM');
      assert.equal(await run.ended, 0);
      assert.equal(linesOf(file).at(-1)?.msg, 'stopped');
    });
  });
});

test('Node is not made to write keys by the variables with which it is debugged', async () => {
  await inFolder(async (folder) => {
    const debugging = { NODE_DEBUG: 'http,net,stream,tls', NODE_DEBUG_NATIVE: 'tls' };
    const run = runProgram(serving(folder), debugging);
    const url = await run.url();
    const { key } = createKey('ww');
    const headers = { authorization: `Bearer ${key}` };
    assert.equal((await fetch(`${url}/v1/me`, { headers })).status, 401);
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: key.slice(-65, -53),
      client_secret: key,
    });
    assert.equal((await fetch(`${url}/oauth/token`, { method: 'POST', body })).status, 401);
    run.kill('SIGTERM');
    assert.equal(await run.ended, 0);
    assert.ok(run.log().length > 3);
    for (const { level, msg } of run.log()) assert.notEqual(level, 'not a log line', msg);
    const hex = Buffer.from(key.slice(-52)).toString('hex');
    for (let at = 0; at + 12 <= hex.length; at += 2)
      assert.ok(
        !run
          .told()
          .replaceAll(' ', '')
          .includes(hex.slice(at, at + 12)),
        'a part of the secret',
      );
  });
});

describe('in a file', () => {
  test('has the reason why the appliance could not start, which stderr has too', async () => {
    await inFolder(async (folder) => {
      const [file, data] = [path.join(folder, 'log'), path.join(folder, 'data')];
      writeFileSync(data, 'no folder');
      const run = serve(folder, file);
      assert.equal(await run.ended, 78);
      assert.match(run.told(), /is a file, not a folder/);
      const last = linesOf(file).at(-1);
      assert.deepEqual([last?.level, last?.msg], ['fatal', 'the appliance cannot start']);
      assert.match(JSON.stringify(last), /is a file, not a folder/);
    });
  });

  test('lines are appended as JSON, and nothing is on stderr', async () => {
    await inFolder(async (folder) => {
      const file = path.join(folder, 'wirewatch.log');
      for (const starts of [1, 2]) {
        const run = serve(folder, file);
        await run.until('a start', () =>
          linesOf(file)
            .filter(({ msg }) => msg === 'listening')
            .at(starts - 1),
        );
        run.kill('SIGTERM');
        assert.equal(await run.ended, 0);
        assert.equal(run.told(), '');
      }
      assert.equal(linesOf(file).filter(({ msg }) => msg === 'stopped').length, 2);
      assert.equal(statSync(file).mode & 0o137, 0, 'others read it, or somebody else writes it');
    });
  });

  test('names from outside cannot steer a terminal that shows it, nor what --json prints', async () => {
    await inFolder(async (folder) => {
      const file = path.join(folder, 'wirewatch.log');
      const [data, drop] = [path.join(folder, 'data'), path.join(folder, 'data', 'drop')];
      mkdirSync(drop, { recursive: true });
      const name = 'evil\u009b2J\u0085\u007f\u202e\u001b[2J';
      writeFileSync(path.join(drop, name), 'x');
      const run = serve(folder, file);
      const line = await lineIn(run, file, 'file refused');
      const status = runProgram(['ingest', 'status', '--json', '--data', data]);
      assert.equal(await status.ended, 0, status.told());
      for (const shown of [readFileSync(file, 'utf8'), status.printed()]) {
        assert.doesNotMatch(shown, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
        assert.ok(shown.includes('evil\\u009b2J\\u0085\\u007f\\u202e\\u001b[2J'), shown);
      }
      assert.ok(JSON.stringify(line).includes(JSON.stringify(name).slice(1, -1)), 'it is the same name');
      run.kill('SIGTERM');
      await run.ended;
    });
  });

  test('a relative path counts from the configuration file', async () => {
    await inFolder(async (folder) => {
      const config = path.join(folder, 'wirewatch.toml');
      writeFileSync(config, '[log]\nfile = "own.log"\n');
      const run = runProgram([...serving(folder), '--config', config]);
      await lineIn(run, path.join(folder, 'own.log'), 'listening');
      run.kill('SIGTERM');
      assert.equal(await run.ended, 0);
    });
  });

  test('renamed and HUP under load, as logrotate does: each request is in one of the files, once', async () => {
    await inFolder(async (folder) => {
      const file = path.join(folder, 'wirewatch.log');
      const run = serve(folder, file);
      const { url } = await lineIn(run, file, 'listening');
      const asked: string[] = [];
      let isOver = false;
      const clients = Array.from({ length: 4 }, async () => {
        while (!isOver) {
          const answer = await fetch(`${url}/v1/nowhere`);
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
      run.kill('SIGTERM');
      assert.equal(await run.ended, 0);
      const logged = [...rotated, file].flatMap((one) => linesOf(one)).map((line) => line.request_id);
      assert.deepEqual(logged.filter((id) => id !== undefined).sort(), asked.sort());
      assert.ok(linesOf(file).length > 0);
    });
  });

  test('it goes on in the open file, and says so, where a new one cannot be opened', async () => {
    await inFolder(async (folder) => {
      const logs = path.join(folder, 'logs');
      mkdirSync(logs);
      const run = serve(folder, path.join(logs, 'wirewatch.log'));
      await lineIn(run, path.join(logs, 'wirewatch.log'), 'listening');
      renameSync(logs, path.join(folder, 'moved'));
      run.kill('SIGHUP');
      const moved = path.join(folder, 'moved', 'wirewatch.log');
      await lineIn(run, moved, 'cannot reopen the log file: lines still go to the previous file');
      run.kill('SIGTERM');
      assert.equal(await run.ended, 0);
      assert.equal(linesOf(moved).at(-1)?.msg, 'stopped');
    });
  });

  test('one that cannot be opened is refused at the start, with what to do', async () => {
    await inFolder(async (folder) => {
      const pipe = path.join(folder, 'pipe');
      const cases = [path.join(folder, 'absent', 'wirewatch.log'), folder];
      if (spawnSync('mkfifo', [pipe]).status === 0) cases.push(pipe);
      for (const file of cases) {
        const run = serve(folder, file);
        assert.equal(await run.ended, 78, run.told());
        assert.ok(run.told().startsWith(`wirewatch: [log] file: cannot open ${file}: `), run.told());
        assert.match(run.told(), /Create its folder/);
      }
    });
  });
});

describe('where it cannot be written', { skip: noFullDevice }, () => {
  test('a file on a full disk stops nothing, and stderr says so', async () => {
    await inFolder(async (folder) => {
      const run = serve(folder, FULL);
      await run.until('the complaint', () =>
        run.told().startsWith(`wirewatch: cannot write to the log file ${FULL}: ENOSPC`) ? true : undefined,
      );
      const address = path.join(folder, 'data', 'address');
      await run.until('its address', () => (existsSync(address) ? true : undefined));
      // With its answer, it also listens to signals.
      await (await fetch(`${readFileSync(address, 'utf8').trim()}/v1/health`)).text();
      run.kill('SIGTERM');
      assert.equal(await run.ended, 0);
      assert.equal(run.told().split('\n').length, 2, run.told());
    });
  });

  test('stderr on a full disk stops nothing: it serves, and ends when it is told to', async () => {
    await inFolder(async (folder) => {
      const stderr = openSync(FULL, 'w');
      const drop = path.join(folder, 'data', 'drop');
      mkdirSync(drop, { recursive: true });
      writeFileSync(path.join(drop, 'not-an-export'), 'x');
      const run = runProgram(serving(folder), { WIREWATCH_INGEST_RESCAN_SECONDS: '0.2' }, { stderr });
      closeSync(stderr);
      await run.until('work to be done', () =>
        existsSync(path.join(drop, 'refused', 'not-an-export')) ? true : undefined,
      );
      run.kill('SIGTERM');
      assert.equal(await run.ended, 0);
    });
  });

  test('what waited is written once it can be, and what was left out is counted', async () => {
    await inFolder(async (folder) => {
      const file = path.join(folder, 'log');
      const failures: string[] = [];
      const lost: number[] = [];
      const output = new LogOutput(openLogFile(FULL), {
        onFailure: (error) => failures.push(error.message),
        onLost: (lines) => lost.push(lines),
      });
      const flushed = () => new Promise<void>((resolve) => output.flush(resolve));
      const line = `${'x'.repeat(1023)}\n`;
      output.write(line);
      await flushed();
      for (let count = 0; count < 1100; count += 1) output.write(line);
      await flushed();
      assert.equal(failures.length, 1);
      output.switchTo(openLogFile(file));
      await flushed();
      // The first line was under way, and as much as may wait behind it.
      assert.deepEqual(lost, [1100 - 1024]);
      assert.equal(readFileSync(file, 'utf8'), line.repeat(1025));
      output.write('afterwards\n');
      await flushed();
      assert.ok(readFileSync(file, 'utf8').endsWith('\nafterwards\n'));
      assert.equal(failures.length, 1);
      rmSync(file);
    });
  });

  test('a pipe whose reader has gone is a failure like others: what comes next goes into the next file', async () => {
    await inFolder(async (folder) => {
      const [pipe, file] = [path.join(folder, 'pipe'), path.join(folder, 'log')];
      spawnSync('mkfifo', [pipe]);
      const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
      const failures: string[] = [];
      const output = new LogOutput(openLogFile(pipe), {
        onFailure: (error) => failures.push(error.message),
        onLost: () => {},
      });
      const flushed = () => new Promise<void>((resolve) => output.flush(resolve));
      closeSync(reader);
      output.write('a line\n');
      await flushed();
      assert.equal(failures.length, 1);
      assert.match(failures[0] ?? '', /EPIPE/);
      output.switchTo(openLogFile(file));
      output.write('another\n');
      await flushed();
      assert.equal(readFileSync(file, 'utf8'), 'a line\nanother\n');
    });
  });

  test('the end of the process is not held up', () => {
    const code = `import { createLogger } from ${source('log.ts')};
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

test('the line of a request is the one that pino would write, and none where its level is not wanted', () => {
  const code = `import { createLogger, logInfo } from ${source('log.ts')};
    const text = '\\u0000\\u001b"\\\\\\ud800\\u2028é' + String.fromCodePoint(0x1f600) + 'x'.repeat(200);
    const fields = { request_id: 'r', path: text, status: 200, rows: 0, code: undefined, duration_ms: 0.125 };
    for (const level of ['info', 'warn', 'silent']) {
      const log = createLogger({ level });
      log.info(fields, 'request');
      logInfo(log, fields, 'request');
    }`;
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  assert.equal(status, 0, stderr);
  const lines = stderr.split('\n').map((line) => line.replace(/"time":"[\d-]{10}T[\d:.]{12}Z"/, '"time":T'));
  assert.equal(lines.length, 3, stderr);
  assert.equal(lines[1], lines[0]);
  assert.match(lines[0] ?? '', /^\{"level":"info","time":T,"request_id":"r",.*,"msg":"request"\}$/);
});

test('SIGHUP without a file changes nothing', async () => {
  await inFolder(async (folder) => {
    const run = serve(folder);
    const url = await run.url();
    run.kill('SIGHUP');
    assert.equal((await fetch(`${url}/v1/nowhere`)).status, 404);
    run.kill('SIGTERM');
    assert.equal(await run.ended, 0);
  });
});
