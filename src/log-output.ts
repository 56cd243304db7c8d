/**
 * The output of the log: a file descriptor, which can be replaced after the file was renamed.
 *
 * Lines are written in the background, the first one after a pause at once and the following ones together: a system
 * call for each line would cost a small request a third of its time, and a slow reader must not delay the appliance. If
 * nothing can be written (a full disk, a pipe without a reader), lines wait up to a limit, and further ones are counted
 * and dropped; writing is tried again every second. At the end of the process, waiting lines are written synchronously,
 * or dropped if that fails: sonic-boom, which pino uses for this, would retry forever.
 */
import { close, constants, openSync, writeSync, write as writeTo } from 'node:fs';
import { paced } from './pace.ts';
import { printable } from './printable.ts';
import { isErrorCode } from './refused.ts';

/** So much is written without waiting for more: the cost of the system call no longer matters. */
const WRITE_LENGTH = 64 * 1024;
const WRITE_EVERY_MS = paced(50);
const RETRY_MS = paced(1000);
/** When the reader of a pipe is slow. */
const RETRY_FULL_PIPE_MS = paced(50);
/** Some thousands of lines. */
const WAITING_LENGTH_MAX = 1024 * 1024;
/** How long a slow reader may delay the end of the process. */
const LAST_WRITE_MAX_MS = 2000;
/** Log collectors need read access by group. */
const FILE_MODE = 0o640;

/** Opens a log file for appending, and creates it if missing. @throws the error of the system */
export function openLogFile(path: string): number {
  const { O_APPEND, O_CREAT, O_NOCTTY, O_NONBLOCK, O_WRONLY } = constants;
  // Without O_NONBLOCK, a named pipe would block the start until somebody reads from it.
  return openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_NONBLOCK, FILE_MODE);
}

/**
 * @param onFailure called at the first failure after a successful write
 * @param onLost called with the number of dropped lines once writing works again
 */
export function createLogOutput(
  fd: number,
  onFailure: (error: Error) => void,
  onLost: (lines: number) => void,
) {
  let waiting = '';
  /** The bytes that are being written, or could not be. */
  let block: Buffer = Buffer.alloc(0);
  let isWriting = false;
  let writtenAtMs = Number.NEGATIVE_INFINITY;
  let isFailing = false;
  let lost = 0;
  let timer: NodeJS.Timeout | undefined;
  const flushed: (() => void)[] = [];

  function writeNow(): void {
    clearTimeout(timer);
    timer = undefined;
    if (block.length === 0) {
      block = Buffer.from(waiting);
      waiting = '';
    }
    if (block.length === 0) {
      callFlushed();
      return;
    }
    isWriting = true;
    writtenAtMs = performance.now();
    writeTo(fd, block, (error, bytes) => {
      isWriting = false;
      if (error === null) written(bytes);
      else failed(error);
    });
  }

  function writeIn(ms: number): void {
    timer ??= setTimeout(writeNow, ms).unref();
  }

  function written(bytes: number): void {
    block = block.subarray(bytes);
    isFailing = false;
    const dropped = lost;
    lost = 0;
    if (block.length > 0 || waiting.length >= WRITE_LENGTH || flushed.length > 0) writeNow();
    else if (waiting !== '') writeIn(WRITE_EVERY_MS);
    // It may write a line: last, or that would begin the next write, too.
    if (dropped > 0) onLost(dropped);
  }

  function failed(error: NodeJS.ErrnoException): void {
    const isBehind = error.code === 'EAGAIN';
    if (!isBehind) {
      if (!isFailing) onFailure(error);
      isFailing = true;
      callFlushed();
    }
    writeIn(isBehind ? RETRY_FULL_PIPE_MS : RETRY_MS);
  }

  function callFlushed(): void {
    for (const done of flushed.splice(0)) done();
  }

  /** Calls back when everything is written, or writing failed. */
  function flush(done: () => void): void {
    flushed.push(done);
    if (!isWriting) writeNow();
  }

  process.on('exit', () => {
    // A write in progress is completed by the system before the process ends.
    if (isWriting) block = Buffer.alloc(0);
    let rest = Buffer.concat([block, Buffer.from(waiting)]);
    const untilMs = performance.now() + LAST_WRITE_MAX_MS;
    while (rest.length > 0 && performance.now() < untilMs) {
      try {
        rest = rest.subarray(writeSync(fd, rest));
      } catch (error) {
        if (!isErrorCode(error, 'EAGAIN')) return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
      }
    }
  });

  return {
    flush,
    /** @param text a line with its line break */
    write(text: string): void {
      const line = printable(text);
      if (waiting.length + line.length > WAITING_LENGTH_MAX) {
        lost += 1;
        return;
      }
      waiting += line;
      if (isWriting || isFailing) return;
      if (waiting.length >= WRITE_LENGTH) writeNow();
      else writeIn(Math.max(0, writtenAtMs + WRITE_EVERY_MS - performance.now()));
    },
    /** Writes to another file from the next line on, and closes the current one. */
    switchTo(next: number): void {
      const before = fd;
      fd = next;
      flush(() => close(before));
    },
  };
}
