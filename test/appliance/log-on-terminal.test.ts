/** The log on a terminal: readable lines, which outside input cannot manipulate. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { createKey } from '../../src/auth/key-form.ts';
import { linesOf, serving } from '../support/log-lines.ts';
import { inFolder, type RunningProgram, runProgram } from '../support/program.ts';
import { onTerminal, terminalMissing } from '../support/terminal.ts';
import { inBody, postToken } from '../support/token-client.ts';

const COLOUR = /\u001b\[\d+m/;

const serveOnTerminal = (folder: string, more: Readonly<Record<string, string>> = {}): RunningProgram =>
  runProgram(serving(folder), { TERM: 'xterm-256color', ...more }, { through: onTerminal });

describe('on a terminal', { skip: terminalMissing }, () => {
  test('lines are readable: time, level, message, and the URL to open', () =>
    inFolder(async (folder) => {
      const run = serveOnTerminal(folder);
      const plain = () => run.stdout().replaceAll(/\u001b\[\d+m/g, '');
      const listening = /^\[\d\d:\d\d:\d\d \S+\] INFO: listening \{"url":"(http:\/\/127\.0\.0\.1:\d+)",/m;
      const [, url] = await run.until('its address', () => listening.exec(plain()) ?? undefined);
      assert.equal((await fetch(`${url}/v1/nowhere`)).status, 404);
      await run.until('the request', () => /INFO: request \{/.exec(plain()) ?? undefined);
      assert.match(run.stdout(), COLOUR);
      assert.equal(run.stderr(), '');
      assert.equal(await run.stop(), 0);
      assert.match(plain(), /INFO: stopped\s*$/);
    }));

  test('external names cannot inject control characters', () =>
    inFolder(async (folder) => {
      const drop = path.join(folder, 'data', 'drop');
      mkdirSync(drop, { recursive: true });
      writeFileSync(path.join(drop, 'evil\u001b[2J\u009b2J\u202e\\u001b[2J'), 'x');
      const run = serveOnTerminal(folder, { NO_COLOR: '1' });
      await run.until('the refusal', () => /file refused \{.*\}/.exec(run.stdout()) ?? undefined);
      await run.stop();
      assert.doesNotMatch(run.stdout(), /[\u001b\u009b\u202e]/);
      assert.ok(run.stdout().includes('evil\\u001b[2J\\u009b2J\\u202e'), run.stdout());
    }));

  test('closing it stops the appliance cleanly', () =>
    inFolder(async (folder) => {
      const run = serveOnTerminal(folder);
      await run.until('its address', () => /listening/.exec(run.stdout()) ?? undefined);
      run.kill('SIGUSR1');
      assert.equal(await run.ended, 0);
    }));

  test('with a log file it still shows where it listens, and where the log is', () =>
    inFolder(async (folder) => {
      const file = path.join(folder, 'wirewatch.log');
      const run = serveOnTerminal(folder, { WIREWATCH_LOG_FILE: file });
      const said = [`; the log is in ${file}`, 'listening on http://127.0.0.1:'];
      await run.until('both', () => said.every((text) => run.stdout().includes(text)) || undefined);
      assert.equal(await run.stop(), 0);
      assert.equal(linesOf(file).at(-1)?.msg, 'stopped');
    }));
});

test('debug variables do not make Node print keys', () =>
  inFolder(async (folder) => {
    const debugging = { NODE_DEBUG: 'http,net,stream,tls', NODE_DEBUG_NATIVE: 'tls' };
    const run = runProgram(serving(folder), debugging);
    const url = await run.url();
    const { key } = createKey('ww');
    const headers = { authorization: `Bearer ${key}` };
    assert.equal((await fetch(`${url}/v1/me`, { headers })).status, 401);
    const client = { id: key.slice(-65, -53), secret: key };
    assert.equal((await postToken({ url }, inBody(client))).status, 401);
    assert.equal(await run.stop(), 0);
    assert.ok(run.log().length > 3);
    for (const { level, msg } of run.log()) assert.notEqual(level, 'not a log line', msg);
    const hex = Buffer.from(key.slice(-52)).toString('hex');
    const log = run.stderr().replaceAll(' ', '');
    for (let at = 0; at + 12 <= hex.length; at += 2)
      assert.ok(!log.includes(hex.slice(at, at + 12)), 'the log contains a part of the secret');
  }));
