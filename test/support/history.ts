/** A data folder with detections.db and its log, written directly by ingest code: no export files, no threads. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compactNow, removeRows } from '../../src/ingest/apply/remove-rows.ts';
import { type StreamWriter, streamWriter } from '../../src/ingest/apply/stream-writer.ts';
import { batchBuilder, type RowBatch } from '../../src/ingest/reading/row-batch.ts';
import type { Compacted } from '../../src/log/compact.ts';
import { logWriter } from '../../src/log/log-writer.ts';
import { type Recovered, type RecoverOptions, recoverDetections } from '../../src/log/recover.ts';
import { findTail } from '../../src/log/torn-end.ts';
import { closeDetections } from '../../src/store/checkpoint.ts';
import type { Database } from '../../src/store/database.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { openAccess } from './access.ts';
import { type Content, contentOfDetections } from './database-content.ts';
import { patchedAll } from './patched-fs.ts';
import { type TestRow, testMatch, testState } from './store.ts';

export type History = Awaited<ReturnType<typeof createHistory>>;

export type HistoryRow = Omit<TestRow, 'version'> & { readonly given?: string; readonly withheld?: string };

/** Options of work on a log whose progress nobody looks at. */
export const QUIETLY = { onProgress: () => {}, between: async () => {} };

/** The segment size of these logs. */
export const SEGMENT_BYTES = 4 * 1024;

/** A `using` declaration deletes it. */
export async function createHistory(segmentBytes = SEGMENT_BYTES) {
  const root = mkdtempSync(join(tmpdir(), 'wirewatch-test-'));
  const folder = dataFolder(root);
  let open: { recovered: Recovered; writer: StreamWriter } | null = null;
  let nowMs = Date.parse('2026-11-20T09:00:00Z');
  const now = () => {
    nowMs += 1000;
    return nowMs;
  };
  const current = () => {
    if (open === null) throw new Error('the history is stopped');
    return open;
  };

  /** Closes everything and opens it again, as a start does. */
  async function restart(options: Partial<RecoverOptions> = {}): Promise<Recovered> {
    stop();
    const recovered = await recoverDetections({ folder, ...QUIETLY, ...options });
    recovered.log.close();
    const { db } = recovered;
    const writer = streamWriterOn(db, root, { now, segmentBytes });
    open = { recovered, writer };
    return recovered;
  }

  /** Closes the database and the log, as a stop does. */
  function stop(): void {
    if (open === null) return;
    open.writer.flush();
    closeDetections(open.recovered.db);
    open = null;
  }

  /** Stops it. @returns what its database has then */
  function stopped(): Content {
    stop();
    return contentOfDetections(root);
  }

  function deleteAll(): void {
    stop();
    rmSync(root, { recursive: true, force: true });
  }

  await restart();
  return {
    folder,
    db: () => current().recovered.db,
    writer: () => current().writer,
    /** Applies rows in one transaction, in batches. `with`: further work in the transaction. */
    apply(
      rows: readonly HistoryRow[],
      { batchRows = 500, with: inTransaction = (_db: Database): void => {} } = {},
    ): void {
      const { writer, recovered } = current();
      const applier = writer.begin();
      for (let at = 0; at < rows.length; at += batchRows)
        applier.apply(batchOf(rows.slice(at, at + batchRows)));
      writer.commit(applier, { kind: 'test' }, () => inTransaction(recovered.db));
    },
    restart,
    /** Works on it between a start and a stop; then detections.db is what it was before. @returns what it had */
    async loseInDatabase(work: () => void): Promise<Content> {
      await restart();
      stop();
      const older = readFileSync(folder.detections);
      await restart();
      work();
      const content = stopped();
      writeFileSync(folder.detections, older);
      return content;
    },
    async remove(subscription: number): Promise<void> {
      await removeRows(current().writer, [subscription], { between: async () => {}, tell: () => {} });
    },
    /** Rewrites the log. @param between see LongWork. @throws if it was refused */
    async compact(between: () => Promise<void> = async () => {}): Promise<Compacted> {
      const work = { between, tell: () => {} };
      return compactNow({ writer: current().writer, folder }, work);
    },
    ...{ stop, stopped },
    delete: deleteAll,
    [Symbol.dispose]: deleteAll,
  };
}

/** A history with what else is in a copy: `access.db` and the secret. */
export async function createCopied(segmentBytes = SEGMENT_BYTES): Promise<History> {
  const history = await createHistory(segmentBytes);
  writeFileSync(history.folder.secret, randomBytes(32));
  openAccess(history.folder.root, { create: true }).close();
  return history;
}

export function batchOf(rows: readonly HistoryRow[]): RowBatch {
  const builder = batchBuilder();
  for (const { content_type, row, given, withheld } of rows)
    builder.add(testState(testMatch({ content_type, version: 1, row }), given, withheld));
  return builder.take(rows.length);
}

/**
 * Rows of these subscriptions in turn, with both content types, so that adjacent rows belong to different streams; some
 * say when they were exported, and some have a withheld address.
 */
export function variedRows(
  subscriptions: readonly number[],
  from: number,
  count: number,
  members: HistoryRow['row'] = {},
): HistoryRow[] {
  return Array.from({ length: count }, (_, index) => ({
    content_type: index % 5 < 2 ? 'image' : 'text',
    row: {
      subscription_id: subscriptions[index % subscriptions.length] ?? 0,
      article_id: from + index,
      article_headline: `Headline ${from + index} “ü”`,
      ...members,
    },
    ...(index % 4 === 0 ? { given: '2026-11-20T08:10:00Z' } : {}),
    ...(index % 7 === 0 ? { withheld: 'https://print.example/1' } : {}),
  }));
}

/** Members of rows that are scored again, at 09:`minute`. */
export const rescored = (minute: number, score?: number) => ({
  last_scored_at: `2026-11-20T09:${minute}:00Z`,
  ...(score === undefined ? {} : { strength_score: score }),
});

export function rowsFrom(from: number, count: number): HistoryRow[] {
  const rowOf = (article_id: number): HistoryRow => ({ content_type: 'text', row: { article_id } });
  return Array.from({ length: count }, (_, index) => rowOf(from + index));
}

/** Creates a stopped history of several transactions, the last with many frames. */
export async function withHistory(use: (history: History, content: Content) => Promise<void>): Promise<void> {
  using history = await createHistory();
  for (let from = 0; from < 100; from += 20) history.apply(rowsFrom(from, 20));
  history.apply(rowsFrom(1000, 400), { batchRows: 5 });
  await use(history, history.stopped());
}

/** Until disposed, does something before each commit of a database, and instead of it if that throws. */
export const beforeCommit = (db: Database, act: () => void): Disposable =>
  patchedAll(db, ['exec'], (exec, args) => {
    if (args[0] === 'COMMIT') act();
    return exec(...args);
  });

/** @param folder the log is created in its subfolder `log` */
export function streamWriterOn(
  db: Database,
  folder: string,
  {
    now = Date.now,
    onDelivered = (_position: number, _atMs: number): void => {},
    segmentBytes = 1_000_000,
  } = {},
): StreamWriter {
  const log = join(folder, 'log');
  const options = { folder: log, segmentBytes } as const;
  const writer = logWriter(options, findTail(log));
  return streamWriter({ db, log: writer, folder: log, now, onDelivered });
}
