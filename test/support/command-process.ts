/**
 * A process that runs commands of the program one after the other, from the sources: see test/support/warm-commands.ts.
 *
 * Descriptor 3 has a request a line, descriptor 4 gets a result a line. A command has ended once nothing of it is left
 * in the event loop, as in a process of its own. What a real end would clean up besides, an open file or a pending
 * operation after a failure, ends this process with the command.
 */
import { readSync, writeSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { reportEnd, run } from '../../src/cli/program.ts';
import { openFiles } from './open-files.ts';
import type { WarmRequest, WarmResult } from './warm-commands.ts';

const REQUESTS = 3;
const RESULTS = 4;
/** Of this process. */
const OWN_FILES = new Set(openFiles('self'));
const CHUNK_BYTES = 65_536;
/** Much longer than any command takes. */
const TIMEOUT_MS = 120_000;
/** How long a failed command may take to close what it has opened. */
const CLOSING_MS = 50;

interface Current {
  readonly stdout: string[];
  readonly stderr: string[];
  readonly cwd: string;
  readonly umask: number;
  readonly timer: NodeJS.Timeout;
  closing?: NodeJS.Timeout;
}

// A backup or a verification lowers the priority of its process, for good: whatever runs here later would starve.
os.setPriority = () => {};
syncBuiltinESMExports();

let current: Current | null = null;
let unread = '';

for (const name of ['stdout', 'stderr'] as const)
  Object.assign(process[name], {
    write(text: string | Uint8Array, ...rest: unknown[]): boolean {
      current?.[name].push(typeof text === 'string' ? text : Buffer.from(text).toString());
      const done = rest.at(-1);
      if (typeof done === 'function') process.nextTick(() => done());
      return true;
    },
  });

process.on('exit', (code) => {
  if (current !== null) answer(current, code, true);
});
process.on('uncaughtException', (error) => process.exit(reportEnd(error)));
process.on('beforeExit', () => {
  if (current !== null) {
    const { cwd, umask } = current;
    const isLast = hasOpenFiles();
    answer(current, Number(process.exitCode ?? 0), isLast);
    if (isLast) process.exit();
    process.chdir(cwd);
    process.umask(umask);
  }
  const request = nextRequest();
  if (request !== null) begin(request);
});

function begin({ args, script, environment, cwd }: WarmRequest): void {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, environment);
  process.argv = [process.execPath, script, ...args];
  process.exitCode = undefined;
  current = {
    stdout: [],
    stderr: [],
    cwd: process.cwd(),
    umask: process.umask(),
    timer: setTimeout(() => process.exit(), TIMEOUT_MS).unref(),
  };
  if (cwd !== null) process.chdir(cwd);
  // Otherwise a command that waits for nothing would end the event loop without another `beforeExit`.
  setImmediate(() => {});
  void run(args).then((code) => {
    process.exitCode = code;
    if (code !== 0 && current !== null)
      current.closing = setTimeout(() => process.exit(), CLOSING_MS).unref();
  });
}

function answer({ stdout, stderr, timer, closing }: Current, status: number, isLast: boolean): void {
  current = null;
  // Connections would stay open for the next request.
  http.globalAgent.destroy();
  https.globalAgent.destroy();
  clearTimeout(timer);
  clearTimeout(closing);
  const result: WarmResult = { status, stdout: stdout.join(''), stderr: stderr.join(''), isLast };
  const text = Buffer.from(`${JSON.stringify(result)}\n`);
  for (let at = 0; at < text.length; ) at += writeSync(RESULTS, text, at);
}

/** Waits for the next line. @returns null once the test process has closed its end */
function nextRequest(): WarmRequest | null {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  while (!unread.includes('\n')) {
    const bytes = readSync(REQUESTS, chunk);
    if (bytes === 0) return null;
    unread += chunk.toString('utf8', 0, bytes);
  }
  const end = unread.indexOf('\n');
  const line = unread.slice(0, end);
  unread = unread.slice(end + 1);
  return JSON.parse(line);
}

/** Whether the command has left a file open, and perhaps a lock with it. */
const hasOpenFiles = (): boolean =>
  openFiles('self').some((path) => path.startsWith('/') && !OWN_FILES.has(path));
