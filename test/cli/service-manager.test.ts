/** Notifying systemd: ready, stopping, watchdog; failures are harmless. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { without } from '../support/installed.ts';
import { inFolder, type RunningProgram, runProgram } from '../support/program.ts';
import { until } from '../support/until.ts';

/** Prints the messages that arrive at a socket like systemd's, one per line. */
const RECEIVE = `
import socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
while True:
    print(receiver.recv(4096).decode(), flush=True)
`;

const serve = (folder: string, env: Readonly<Record<string, string>>): RunningProgram =>
  runProgram(['serve', '--data', path.join(folder, 'data'), '--port', '0'], env);

/** Listens in place of systemd. */
function receive(use: (folder: string, socket: string, words: () => string[]) => Promise<void>) {
  return inFolder(async (folder) => {
    const socket = path.join(folder, 'notify');
    using receiver = spawn('python3', ['-c', RECEIVE, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
    let received = '';
    receiver.stdout.setEncoding('utf8').on('data', (text: string) => {
      received += text;
    });
    await until('what systemd is to get', () => existsSync(socket));
    await use(folder, socket, () => received.split('\n'));
  });
}

describe('systemd', { skip: without('systemd-notify', 'python3') }, () => {
  test('gets READY once connections are accepted, and STOPPING before they are refused', () =>
    receive(async (folder, NOTIFY_SOCKET, words) => {
      const run = serve(folder, { NOTIFY_SOCKET });
      await run.until('READY', () => words().includes('READY=1') || undefined);
      const status = words().find((word) => word.startsWith('STATUS=listening on '));
      const url = status?.replace('STATUS=listening on ', '');
      assert.equal((await fetch(`${url}/v1/nowhere`)).status, 404);
      assert.equal(await run.url(), url);
      assert.equal(words().includes('WATCHDOG=1'), false);
      assert.equal(await run.stop(), 0);
      // The message may arrive after the program has ended.
      await until('what systemd is to get', () => words().includes('STOPPING=1'));
    }));

  test('gets nothing from a refused start', () =>
    receive(async (folder, NOTIFY_SOCKET, words) => {
      const run = serve(folder, { NOTIFY_SOCKET, WIREWATCH_LOG_FILE: path.join(folder, 'absent', 'log') });
      assert.equal(await run.ended, 78);
      assert.deepEqual(words(), ['']);
    }));

  test('gets watchdog messages at the requested interval', () =>
    receive(async (folder, NOTIFY_SOCKET, words) => {
      await using run = serve(folder, { NOTIFY_SOCKET, WATCHDOG_USEC: '200000' });
      const alive = () => words().filter((word) => word === 'WATCHDOG=1').length;
      await run.until('three signs of life', () => alive() >= 3 || undefined);
    }));
});

test('without systemd-notify it serves, and logs once that it could not notify', () =>
  inFolder(async (folder) => {
    const NOTIFY_SOCKET = path.join(folder, 'notify');
    const run = serve(folder, { NOTIFY_SOCKET, WATCHDOG_USEC: '20000', PATH: path.join(folder, 'nothing') });
    const warning = 'the service manager cannot be told: is systemd-notify installed?';
    const messages = () => run.log().filter(({ msg }) => msg === warning);
    const url = await run.url();
    await run.until('the warning', () => messages()[0]);
    assert.equal((await fetch(`${url}/v1/nowhere`)).status, 404);
    assert.equal(await run.stop(), 0);
    assert.equal(messages().length, 1);
  }));
