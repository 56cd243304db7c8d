/** The thread that reads exports: unpacks, checks and renders. It never opens a database. */
import { fsyncSync, writeFileSync } from 'node:fs';
import type { MessagePort } from 'node:worker_threads';
import { photoPath } from '../../detection/photo-address.ts';
import { sendEvent, serveCalls } from '../../thread-call.ts';
import { addFrame, BATCHES_IN_FLIGHT_MAX, type RowBatch } from '../apply/row-batch.ts';
import { createIn } from '../drop/own-folder.ts';
import { jsonText, NESTED_TOO_DEEPLY } from '../format/error-groups.ts';
import { type BadRow, type ReadingResult, readExport } from '../rules/read-export.ts';
import type { ReaderCalls, ReaderEvent, ReaderOrder, ReaderSettings } from './reader-messages.ts';

export function runReader(port: MessagePort, settings: ReaderSettings): void {
  const sessions = new Map<number, Session>();
  serveCalls<ReaderCalls>(port, {
    async read({ session: number, order }) {
      const session = new Session(number, port);
      sessions.set(number, session);
      try {
        return await read(session, order, settings);
      } finally {
        sessions.delete(number);
      }
    },
    credit: ({ session, memory }) => sessions.get(session)?.addCredit(memory),
    cancel: (session) => sessions.get(session)?.cancel(),
  });
}

class Cancelled extends Error {}

/** One reading, and how many batches it may still send: the ingest thread returns a credit for each it has applied. */
class Session {
  /** Of batches that were applied. */
  readonly memory: ArrayBuffer[] = [];
  readonly #number: number;
  readonly #port: MessagePort;
  #credits = BATCHES_IN_FLIGHT_MAX;
  #isCancelled = false;
  #wake: (() => void) | null = null;

  constructor(number: number, port: MessagePort) {
    this.#number = number;
    this.#port = port;
  }

  async send(batch: RowBatch): Promise<void> {
    while (this.#credits === 0 && !this.#isCancelled)
      await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#check();
    this.#credits -= 1;
    const frame = addFrame(batch);
    const event: ReaderEvent = { kind: 'batch', session: this.#number, batch };
    sendEvent(this.#port, event, [frame.buffer, batch.lines.buffer]);
  }

  sendProgress(rows: number): void {
    this.#check();
    const event: ReaderEvent = { kind: 'progress', session: this.#number, rows };
    sendEvent(this.#port, event);
  }

  addCredit(memory: ArrayBuffer): void {
    this.memory.push(memory);
    this.#credits += 1;
    this.#wake?.();
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#wake?.();
  }

  #check(): void {
    if (this.#isCancelled) throw new Cancelled();
  }
}

async function read(session: Session, order: ReaderOrder, settings: ReaderSettings): Promise<ReadingResult> {
  const skipped = new SkippedRows(order);
  try {
    return await readExport(order, {
      photoPath: (sourceInternalId) => photoPath(settings.photo_key, sourceInternalId),
      memory: session.memory,
      ...(order.check_only ? {} : { onBatch: (batch) => session.send(batch) }),
      onBadRow: (bad) => skipped.add(bad),
      onProgress: (rows) => session.sendProgress(rows),
    });
  } finally {
    skipped.close();
  }
}

/** Enough to find the cause. A small file can unpack to millions of bad rows. */
const NOTES_BYTES_MAX = 4 * 1024 * 1024;

/** Writes the skipped rows of a file, a JSON object a line; those beyond the limit are only counted. */
class SkippedRows {
  readonly #order: Pick<ReaderOrder, 'drop' | 'skipped_path'>;
  #file: ReturnType<typeof createIn> | null = null;
  #bytes = 0;
  #more = 0;

  constructor(order: Pick<ReaderOrder, 'drop' | 'skipped_path'>) {
    this.#order = order;
  }

  add(bad: BadRow): void {
    const { drop, skipped_path } = this.#order;
    if (skipped_path === null) return;
    this.#file ??= createIn(drop, skipped_path);
    const text = this.#bytes < NOTES_BYTES_MAX ? textOf(bad) : null;
    const bytes = text === null ? 0 : Buffer.byteLength(text);
    if (text === null || this.#bytes + bytes > NOTES_BYTES_MAX) {
      // All rows after it are left out, too: the notes have no gaps.
      this.#bytes = NOTES_BYTES_MAX;
      this.#more += 1;
      return;
    }
    this.#bytes += bytes;
    writeFileSync(this.#file.fd, text);
  }

  close(): void {
    if (this.#file === null) return;
    using file = this.#file;
    this.#file = null;
    if (this.#more > 0) writeFileSync(file.fd, `{"more_rows":${this.#more}}\n`);
    fsyncSync(file.fd);
  }
}

function textOf(bad: BadRow): string {
  return `${jsonText(bad) ?? jsonText({ ...bad, row: NESTED_TOO_DEEPLY })}\n`;
}
