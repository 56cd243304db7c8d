/** The operator's command for alerts: its input, one run at a time, bounded. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { beforeEach, test } from 'node:test';
import { pino } from 'pino';
import { type AlertCommand, createAlertCommand } from '../../src/health/alert-command.ts';
import { packedText } from '../../src/packed.ts';
import { startAppliance } from '../support/appliance.ts';
import { listen } from '../support/free-port.ts';
import { without } from '../support/installed.ts';
import { example } from '../support/manual.ts';
import { testFolder } from '../support/test-folder.ts';
import { until } from '../support/until.ts';

const folder = testFolder();
const received = join(folder, 'told');
let lines: Record<string, unknown>[];
const written = { write: (line: string) => void lines.push(JSON.parse(line)) };
const log = pino({ base: null, level: 'debug' }, written);
const ALERT = {
  name: 'failed windows' as const,
  page_worthy: false,
  since: '2026-11-21T10:00:00Z',
  detail: 'newswire: 1',
  what_to_do: 'See failed/.',
};

beforeEach(() => {
  lines = [];
  rmSync(received, { force: true });
});

/** A command that runs a Node script with {@link received} and more as its arguments. */
const command = (script: string, runMs?: number, ...more: string[]): AlertCommand =>
  createAlertCommand([process.execPath, '-e', script, received, ...more], log, runMs);

const COPY = `fs.appendFileSync(process.argv[1], fs.readFileSync(0))`;
/** The notifications received so far. */
function notifications(): unknown[] {
  const text = existsSync(received) ? readFileSync(received, 'utf8') : '';
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line));
}
const logged = (msg: string) => lines.filter((line) => line.msg === msg);

test('each alert goes to its stdin, in order, without a shell and without the configuration', async () => {
  process.env.WIREWATCH_KEYS_PREFIX = 'aa';
  const print = `JSON.stringify([process.argv[2], process.env.WIREWATCH_KEYS_PREFIX ?? null]) + '\\n'`;
  const tell = command(`${COPY}; fs.appendFileSync(process.argv[1], ${print})`, undefined, '$HOME; exit');
  tell.run('opened', ALERT);
  tell.run('closed', ALERT);
  await until('both notifications', () => notifications().length === 4);
  delete process.env.WIREWATCH_KEYS_PREFIX;
  const own = ['$HOME; exit', null];
  assert.deepEqual(notifications(), [{ event: 'opened', ...ALERT }, own, { event: 'closed', ...ALERT }, own]);
  assert.deepEqual(lines, []);
});

test('a command that fails, is missing, reads nothing or hangs is logged, and the next one runs', async () => {
  const failing = command('process.exit(3)');
  failing.run('opened', ALERT);
  failing.run('closed', ALERT);
  await until('both failed', () => logged('the alert command failed').length === 2);
  assert.equal(lines[0]?.code, 3);

  const missing = createAlertCommand([join(folder, 'missing')], log);
  missing.run('opened', ALERT);
  missing.run('closed', ALERT);
  await until('neither was run', () => logged('cannot run the alert command').length === 2);
  assert.equal(logged('the alert command failed').length, 2, 'the error must be logged once');

  const hanging = command('setInterval(() => {}, 1000)', 50);
  hanging.run('opened', ALERT);
  hanging.run('closed', ALERT);
  await until('both were ended', () => logged('the alert command failed').length === 4);
  assert.equal(lines.at(-1)?.signal, 'SIGKILL');
});

test('a command that the system cannot start is logged, and the next one runs', async () => {
  const tooLong = createAlertCommand([process.execPath, 'x'.repeat(3_000_000)], log);
  tooLong.run('opened', ALERT);
  tooLong.run('closed', ALERT);
  assert.equal(logged('cannot run the alert command').length, 2);
});

test('at most a hundred wait, and none runs after close', async () => {
  const hanging = command('setInterval(() => {}, 1000)');
  for (let count = 0; count < 102; count += 1) hanging.run('opened', ALERT);
  assert.equal(logged('alert command skipped: too many alerts are waiting for it').length, 1);
  hanging.close();
  await until('the command is killed', () => logged('the alert command failed').length === 1);
});

test('[alerts] command is run; a hostile file name reaches it as text on one line of its stdin, and nothing else', async () => {
  const script = join(folder, 'tell.cjs');
  writeFileSync(
    script,
    `const fs = require('node:fs');
    fs.writeFileSync(process.argv[2] + '.process', JSON.stringify([process.argv.slice(2), process.env]));
    fs.appendFileSync(process.argv[2], fs.readFileSync(0));`,
  );
  const pwned = join(folder, 'pwned');
  // A name has no slash.
  const shell = 'touch $PWNED';
  const name = `";$(${shell})\`${shell}\`|${shell}&\n\nRun: sh evil.sh\r\u001b[2J\u009b2J\u202e --help\t%s{}`;
  await using appliance = await startAppliance({
    PWNED: pwned,
    WIREWATCH_ALERTS_COMMAND: [process.execPath, script, received].join(','),
  });
  appliance.put(name, 'x');
  const isRefusal = (line: unknown) => /^{"event":"opened","name":"refused files"/.test(JSON.stringify(line));
  const refused = () => notifications().find(isRefusal);
  await until('the notification', () => refused() !== undefined);
  const { detail } = Object(refused());
  assert.match(
    detail,
    /^refused ";\$\(touch .*&\\n\\nRun: sh evil\.sh\\u000d\\u001b\[2J\\u009b2J\\u202e --help\\t%s\{\}: /,
  );
  assert.doesNotMatch(detail, /[\u0000-\u001f\u007f-\u009f\u2028-\u202e]/);
  const [args, env] = JSON.parse(readFileSync(`${received}.process`, 'utf8'));
  assert.deepEqual(args, [received]);
  assert.equal(env.PWNED, pwned, 'a shell would create it');
  assert.doesNotMatch(JSON.stringify(env), /evil/);
  assert.equal(existsSync(pwned), false);
});

test('the sample mails each alert, and marks urgent ones', { skip: without('jq', 'curl') }, async () => {
  assert.deepEqual(Object.keys(JSON.parse(example('alerts', 'alert'))), ['event', ...Object.keys(ALERT)]);
  const script = join(folder, 'script');
  writeFileSync(script, packedText('config', 'mail-alert'), { mode: 0o755 });
  using sink = await startSmtpSink();
  const detail = `$(touch '${folder}/pwned')\`touch '${folder}/pwned'\`\nBcc: x@example.com\n\n.\n-n %s \\\\c`;
  for (const page_worthy of [false, true]) {
    const mail = spawn(script, [sink.url, 'wirewatch@agency.example', 'desk@agency.example']);
    mail.stdin.end(`${JSON.stringify({ event: 'opened', ...ALERT, page_worthy, detail })}\n`);
    const [status] = await once(mail, 'exit');
    assert.equal(status, 0);
    const message = (sink.messages.pop() ?? []).filter((line) => !line.startsWith('Date: '));
    assert.equal(
      message.join('\n').trimEnd(),
      `From: wirewatch@agency.example\nTo: desk@agency.example\nSubject: ${page_worthy ? 'NOW ' : ''}Wirewatch: failed windows opened\nContent-Type: text/plain; charset=utf-8\n\n${detail}\n\n${ALERT.what_to_do}`,
    );
    assert.equal(existsSync(join(folder, 'pwned')), false);
  }
});

/** A mail server on loopback that takes one message a connection, and keeps it; `using` closes it. */
async function startSmtpSink() {
  /** The lines of each message, after the envelope; dots that the protocol doubles are single. */
  const messages: string[][] = [];
  const server = createServer((socket) => {
    let message: string[] | null = null;
    const reply = (text: string) => socket.write(`${text}\r\n`);
    reply('220 sink');
    createInterface({ input: socket }).on('line', (line) => {
      if (message === null) {
        const [command = ''] = line.toUpperCase().split(/[ :]/);
        if (command === 'DATA') message = [];
        reply(command === 'DATA' ? '354 go on' : command === 'QUIT' ? '221 bye' : '250 ok');
      } else if (line === '.') {
        messages.push(message);
        message = null;
        reply('250 taken');
      } else message.push(line.replace(/^\./, ''));
    });
    socket.on('error', () => {});
  });
  const url = `smtp://127.0.0.1:${await listen(server)}`;
  return { url, messages, [Symbol.dispose]: () => void server.close() };
}
