/**
 * Where log lines go: a file descriptor, or a file that is opened anew when it was renamed away.
 *
 * Lines are written in the background, the first after a pause at once and those that follow it together: a system call
 * for each would cost a small request a third of its time, and a reader that stands still must not hold up the appliance. Where nothing can be written (a full disk, a pipe without
 * a reader), lines wait up to a limit and are then counted and left out; writing is tried again every second. At the end of
 * the process what waits is written at once, and given up where that fails: sonic-boom, which pino brings for this,
 * would try for ever there.
 */
import { close, constants, openSync, write, writeSync } from 'node:fs';
import { paced } from './pace.ts';
import { printable } from './printable.ts';

export interface LogOutputListener {
  /** Writing failed for the first time since it last went well. */
  readonly onFailure: (error: Error) => void;
  /** So many lines were left out; writing goes on. */
  readonly onLost: (lines: number) => void;
}

/** What is written at once without waiting for more: so much that the system call does not count. */
const WRITE_LENGTH = 64 * 1024;
const WRITE_EVERY_MS = paced(50);
const RETRY_MS = paced(1000);
/** A reader of a pipe is behind. */
const RETRY_FULL_PIPE_MS = paced(50);
/** Some thousands of lines. */
const WAITING_LENGTH_MAX = 1024 * 1024;
/** How long the end of the process may be held up by a reader that is behind. */
const LAST_WRITE_MAX_MS = 2000;
/** The owner writes, a group may read: what collects logs needs no more. */
const FILE_MODE = 0o640;

/** Opens a log file for appending, and makes it where it is missing. @throws the system's error */
export function openLogFile(path: string): number {
  const { O_APPEND, O_CREAT, O_NOCTTY, O_NONBLOCK, O_WRONLY } = constants;
  // Without O_NONBLOCK a pipe of that name would hold up the start until somebody reads from it.
  return openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_NONBLOCK, FILE_MODE);
}

export class LogOutput {
  #fd: number;
  #nextFd: number | null = null;
  readonly #listener: LogOutputListener;
  #waiting: string[] = [];
  #waitingLength = 0;
  /** What is being written, or could not be. */
  #block: Buffer = Buffer.alloc(0);
  #isWriting = false;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  #isFailing = false;
  #lost = 0;
  #timer: NodeJS.Timeout | null = null;
  #flushed: (() => void)[] = [];

  constructor(fd: number, listener: LogOutputListener) {
    this.#fd = fd;
    this.#listener = listener;
    process.on('exit', () => this.#writeLast());
  }

  /** @param given a line with its line break */
  write(given: string): void {
    const line = printable(given);
    if (this.#waitingLength + line.length > WAITING_LENGTH_MAX) {
      this.#lost += 1;
      return;
    }
    this.#waiting.push(line);
    this.#waitingLength += line.length;
    if (this.#isWriting || this.#isFailing) return;
    if (this.#waitingLength >= WRITE_LENGTH) this.#writeNow();
    else this.#writeIn(Math.max(0, this.#writtenAtMs + WRITE_EVERY_MS - performance.now()));
  }

  /** Calls back when everything is written, or cannot be. */
  flush(done: () => void): void {
    this.#flushed.push(done);
    if (!this.#isWriting) this.#writeNow();
  }

  /** Goes on in another file, from the next line on; the present one is closed. */
  switchTo(fd: number): void {
    if (this.#nextFd !== null) close(this.#nextFd);
    this.#nextFd = fd;
    if (!this.#isWriting) this.#writeNow();
  }

  #writeNow(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#takeNextFile();
    if (this.#block.length === 0) this.#takeWaiting();
    if (this.#block.length === 0) {
      this.#settle();
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

  #takeWaiting(): void {
    this.#block = Buffer.from(this.#waiting.join(''));
    this.#waiting = [];
    this.#waitingLength = 0;
  }

  #takeNextFile(): void {
    if (this.#nextFd === null) return;
    close(this.#fd);
    this.#fd = this.#nextFd;
    this.#nextFd = null;
  }

  #written(bytes: number): void {
    this.#block = this.#block.subarray(bytes);
    this.#isFailing = false;
    const lost = this.#lost;
    this.#lost = 0;
    if (lost > 0) this.#listener.onLost(lost);
    const hasMore = this.#block.length > 0 || this.#waitingLength >= WRITE_LENGTH;
    if (hasMore || this.#flushed.length > 0 || this.#nextFd !== null) this.#writeNow();
    else if (this.#waitingLength > 0) this.#writeIn(WRITE_EVERY_MS);
  }

  #writeIn(ms: number): void {
    this.#timer ??= setTimeout(() => this.#writeNow(), ms).unref();
  }

  #failed(error: NodeJS.ErrnoException): void {
    const isBehind = error.code === 'EAGAIN';
    if (!isBehind) {
      if (!this.#isFailing) this.#listener.onFailure(error);
      this.#isFailing = true;
      this.#settle();
    }
    if (this.#nextFd !== null) this.#writeNow();
    else this.#writeIn(isBehind ? RETRY_FULL_PIPE_MS : RETRY_MS);
  }

  #settle(): void {
    const flushed = this.#flushed;
    this.#flushed = [];
    for (const done of flushed) done();
  }

  #writeLast(): void {
    // What is on its way is written by the system before the process is gone.
    if (this.#isWriting) this.#block = Buffer.alloc(0);
    let rest = Buffer.concat([this.#block, Buffer.from(this.#waiting.join(''))]);
    const untilMs = performance.now() + LAST_WRITE_MAX_MS;
    while (rest.length > 0 && performance.now() < untilMs) {
      try {
        rest = rest.subarray(writeSync(this.#fd, rest));
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
      }
    }
  }
}
