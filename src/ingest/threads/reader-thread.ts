/** The thread that reads exports: unpacks, checks and renders, and never touches a database. */
import { closeSync, fsyncSync, openSync, writeFileSync } from 'node:fs';
import type { MessagePort } from 'node:worker_threads';
import { photoPath } from '../../detection/photo.ts';
import { errorCode, reasonOf } from '../../refused.ts';
import { addFrame, BATCHES_IN_FLIGHT_MAX, type RowBatch } from '../apply/row-batch.ts';
import { jsonText, NESTED_TOO_DEEPLY } from '../format/line-errors.ts';
import { type BadRow, readExport } from '../rules/read-export.ts';
import type { FromReader, ReaderSettings, ToReader } from './reader-messages.ts';

/** Serves readings until the port closes. */
export function runReader(port: MessagePort, settings: ReaderSettings): void {
  const sessions = new Map<number, Session>();
  port.on('message', (message: ToReader) => {
    switch (message.kind) {
      case 'read': {
        const session = new Session();
        sessions.set(message.session, session);
        void serve(port, message, session, settings).finally(() => sessions.delete(message.session));
        break;
      }
      case 'credit':
        sessions.get(message.session)?.addCredit(message.memory);
        break;
      case 'cancel':
        sessions.get(message.session)?.cancel();
        break;
    }
  });
}

class Cancelled extends Error {}

/** How many batches may still be sent: the writer gives one back for each that it has applied. */
class Session {
  /** Of batches that were applied. */
  readonly memory: ArrayBuffer[] = [];
  #credits = BATCHES_IN_FLIGHT_MAX;
  #cancelled = false;
  #wake: (() => void) | null = null;

  async takeCredit(): Promise<void> {
    while (this.#credits === 0 && !this.#cancelled)
      await new Promise<void>((resolve) => (this.#wake = resolve));
    if (this.#cancelled) throw new Cancelled();
    this.#credits -= 1;
  }

  addCredit(memory: ArrayBuffer): void {
    this.memory.push(memory);
    this.#credits += 1;
    this.#wake?.();
  }

  cancel(): void {
    this.#cancelled = true;
    this.#wake?.();
  }

  get isCancelled(): boolean {
    return this.#cancelled;
  }
}

async function serve(
  port: MessagePort,
  { session: number, order }: Extract<ToReader, { kind: 'read' }>,
  session: Session,
  settings: ReaderSettings,
): Promise<void> {
  const send = (message: FromReader, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer);
  const skipped = new SkippedRows(order.skipped_path);
  const handOn = async (batch: RowBatch) => {
    await session.takeCredit();
    const frame = addFrame(batch);
    send({ kind: 'batch', session: number, batch }, [frame.buffer, batch.lines.buffer]);
  };
  try {
    const result = await readExport(order, {
      photoPath: (sourceInternalId) => photoPath(settings.photo_key, sourceInternalId),
      memory: session.memory,
      ...(order.check_only ? {} : { onBatch: handOn }),
      onBadRow: (bad) => skipped.add(bad),
      onProgress: (rows) => {
        if (session.isCancelled) throw new Cancelled();
        send({ kind: 'progress', session: number, rows });
      },
    });
    skipped.close();
    send({ kind: 'end', session: number, result });
  } catch (error) {
    skipped.close();
    const code = errorCode(error);
    const message = error instanceof Cancelled ? 'cancelled' : reasonOf(error);
    const syscall = error instanceof Error && 'syscall' in error ? String(error.syscall) : null;
    send({ kind: 'fault', session: number, code, message, syscall });
  }
}

/** Enough to find out what is wrong; a small file can unpack to millions of bad rows, each with a longer note. */
const NOTES_BYTES_MAX = 4 * 1024 * 1024;

/** Writes the rows that are left out of a file, a JSON object a line; those for which there is no room are counted. */
class SkippedRows {
  readonly #path: string | null;
  #file: number | null = null;
  #bytes = 0;
  #notNoted = 0;

  constructor(path: string | null) {
    this.#path = path;
  }

  add(bad: BadRow): void {
    if (this.#path === null) return;
    this.#file ??= openSync(this.#path, 'w', 0o600);
    const text = this.#bytes < NOTES_BYTES_MAX ? textOf(bad) : null;
    const bytes = text === null ? 0 : Buffer.byteLength(text);
    if (text === null || this.#bytes + bytes > NOTES_BYTES_MAX) {
      // Once one is left out, so are those behind it: the notes have no holes.
      this.#bytes = NOTES_BYTES_MAX;
      this.#notNoted += 1;
      return;
    }
    this.#bytes += bytes;
    writeFileSync(this.#file, text);
  }

  close(): void {
    if (this.#file === null) return;
    const file = this.#file;
    this.#file = null;
    try {
      if (this.#notNoted > 0) writeFileSync(file, `{"more_rows":${this.#notNoted}}\n`);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  }
}

function textOf(bad: BadRow): string {
  return `${jsonText(bad) ?? jsonText({ ...bad, row: NESTED_TOO_DEEPLY })}\n`;
}
