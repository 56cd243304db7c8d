/**
 * The output of the log: a file descriptor, which can be replaced after the file was renamed.
 *
 * Lines are written in the background, the first one after a pause at once and the following ones together: a system
 * call for each line would cost a small request a third of its time, and a slow reader must not delay the appliance. If
 * nothing can be written (a full disk, a pipe without a reader), lines wait up to a limit, and further ones are counted
 * and dropped; writing is tried again every second. At the end of the process, waiting lines are written synchronously,
 * or dropped if that fails: sonic-boom, which pino uses for this, would retry forever.
 */
import { close, constants, openSync, write, writeSync } from 'node:fs';
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

export class LogOutput {
  #fd: number;
  #nextFd: number | null = null;
  readonly #onFailure: (error: Error) => void;
  readonly #onLost: (lines: number) => void;
  #waiting = '';
  /** The bytes that are being written, or could not be. */
  #block: Buffer = Buffer.alloc(0);
  #isWriting = false;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  #isFailing = false;
  #lost = 0;
  #timer: NodeJS.Timeout | undefined;
  readonly #flushed: (() => void)[] = [];

  /**
   * @param onFailure called at the first failure after a successful write
   * @param onLost called with the number of dropped lines once writing works again
   */
  constructor(fd: number, onFailure: (error: Error) => void, onLost: (lines: number) => void) {
    this.#fd = fd;
    this.#onFailure = onFailure;
    this.#onLost = onLost;
    process.on('exit', () => this.#writeLast());
  }

  /** @param text a line with its line break */
  write(text: string): void {
    const line = printable(text);
    if (this.#waiting.length + line.length > WAITING_LENGTH_MAX) {
      this.#lost += 1;
      return;
    }
    this.#waiting += line;
    if (this.#isWriting || this.#isFailing) return;
    if (this.#waiting.length >= WRITE_LENGTH) this.#writeNow();
    else this.#writeIn(Math.max(0, this.#writtenAtMs + WRITE_EVERY_MS - performance.now()));
  }

  /** Calls back when everything is written, or writing failed. */
  flush(done: () => void): void {
    this.#flushed.push(done);
    if (!this.#isWriting) this.#writeNow();
  }

  /** Writes to another file from the next line on, and closes the current one. */
  switchTo(fd: number): void {
    if (this.#nextFd !== null) close(this.#nextFd);
    this.#nextFd = fd;
    if (!this.#isWriting) this.#writeNow();
  }

  #writeNow(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#nextFd !== null) {
      close(this.#fd);
      this.#fd = this.#nextFd;
      this.#nextFd = null;
    }
    if (this.#block.length === 0) {
      this.#block = Buffer.from(this.#waiting);
      this.#waiting = '';
    }
    if (this.#block.length === 0) {
      this.#callFlushed();
      return;
    }
    this.#isWriting = true;
    this.#writtenAtMs = performance.now();
    write(this.#fd, this.#block, (error, bytes) => {
      this.#isWriting = false;
      if (error === null) this.#written(bytes);
      else this.#failed(error);
    });
  }

  #written(bytes: number): void {
    this.#block = this.#block.subarray(bytes);
    this.#isFailing = false;
    const lost = this.#lost;
    this.#lost = 0;
    if (lost > 0) this.#onLost(lost);
    const hasMore = this.#block.length > 0 || this.#waiting.length >= WRITE_LENGTH;
    if (hasMore || this.#flushed.length > 0 || this.#nextFd !== null) this.#writeNow();
    else if (this.#waiting !== '') this.#writeIn(WRITE_EVERY_MS);
  }

  #writeIn(ms: number): void {
    this.#timer ??= setTimeout(() => this.#writeNow(), ms).unref();
  }

  #failed(error: NodeJS.ErrnoException): void {
    const isBehind = error.code === 'EAGAIN';
    if (!isBehind) {
      if (!this.#isFailing) this.#onFailure(error);
      this.#isFailing = true;
      this.#callFlushed();
    }
    if (this.#nextFd !== null) this.#writeNow();
    else this.#writeIn(isBehind ? RETRY_FULL_PIPE_MS : RETRY_MS);
  }

  #callFlushed(): void {
    for (const done of this.#flushed.splice(0)) done();
  }

  #writeLast(): void {
    // A write in progress is completed by the system before the process ends.
    if (this.#isWriting) this.#block = Buffer.alloc(0);
    let rest = Buffer.concat([this.#block, Buffer.from(this.#waiting)]);
    const untilMs = performance.now() + LAST_WRITE_MAX_MS;
    while (rest.length > 0 && performance.now() < untilMs) {
      try {
        rest = rest.subarray(writeSync(this.#fd, rest));
      } catch (error) {
        if (!isErrorCode(error, 'EAGAIN')) return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
      }
    }
  }
}
