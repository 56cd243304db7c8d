/** Starts with what a crash around a checkpoint left, and with files that an operator put in place of others. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { checkpoint } from '../../src/store/checkpoint.ts';
import { openDatabase } from '../../src/store/database.ts';
import {
  assertSameContent,
  type Content,
  contentOfDetections,
  withoutOpenDelivery,
} from '../support/database-content.ts';
import { type History, rowsFrom, withHistory } from '../support/history.ts';

const PAGE_BYTES = 16_384;
const ENDS = ['', '-wal', '-checkpoint'] as const;
type Files = Readonly<Record<(typeof ENDS)[number], Buffer | null>>;

function filesOf({ folder }: History): Files {
  const read = (path: string) => (existsSync(path) ? readFileSync(path) : null);
  return {
    '': read(folder.detections),
    '-wal': read(`${folder.detections}-wal`),
    '-checkpoint': read(`${folder.detections}-checkpoint`),
  };
}

/** Overwrites them, so that each keeps its inode, as `cp` does. */
function putFiles({ folder }: History, files: Files): void {
  rmSync(`${folder.detections}-shm`, { force: true });
  for (const end of ENDS) {
    const content = files[end];
    if (content === null) rmSync(`${folder.detections}${end}`, { force: true });
    else writeFileSync(`${folder.detections}${end}`, content);
  }
}

interface Moments {
  /** After a clean stop, before an earlier checkpoint. */
  readonly older: Files;
  /** In use, before the checkpoint. */
  readonly before: Files;
  /** In the checkpoint, with no page copied yet. */
  readonly within: Files;
  /** After the last page was copied. */
  readonly copied: Files;
  /** After a clean stop. */
  readonly after: Files;
  readonly content: Content;
}

/** Runs a checkpoint. A reader keeps it from its end, so that its middle can be seen. */
async function momentsOf(history: History): Promise<Moments> {
  const older = filesOf(history);
  await history.restart();
  const db = history.db();
  history.apply(rowsFrom(6000, 20));
  checkpoint(db);
  assert.equal(filesOf(history)['-checkpoint'], null);
  history.apply(rowsFrom(7000, 400));
  const before = filesOf(history);
  const reader = openDatabase(history.folder.detections, 'read');
  // The state before the rows.
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM detection').get();
  history.apply(rowsFrom(8000, 400));
  checkpoint(db);
  const within = filesOf(history);
  assert.ok(within['-checkpoint'] !== null, 'an incomplete checkpoint keeps its marker');
  reader.exec('COMMIT');
  reader.close();
  // All that a complete one writes.
  db.pragma('wal_checkpoint(FULL)');
  const copied = filesOf(history);
  history.stop();
  const after = filesOf(history);
  assert.deepEqual([after['-wal'], after['-checkpoint']], [null, null], 'nothing is left beside the file');
  const content = withoutOpenDelivery(contentOfDetections(history.folder.root));
  return { older, before, within, copied, after, content };
}

/** Starts with some files. @returns why the database was rebuilt; null: it was not */
async function startWith(history: History, files: Files, { content }: Moments): Promise<string | null> {
  putFiles(history, files);
  const { madeAnew } = await history.restart();
  history.stop();
  const left = readdirSync(history.folder.root).filter((name) => /peek|draft|-wal|-checkpoint/.test(name));
  assert.deepEqual(left, []);
  assertSameContent(withoutOpenDelivery(contentOfDetections(history.folder.root)), content);
  return madeAnew;
}

const withMoments = (use: (history: History, moments: Moments) => Promise<void>) => () =>
  withHistory(async (history) => use(history, await momentsOf(history)));

/** Pages of two states. @param isNew whether a page is of the later one */
function mixed(before: Buffer | null, after: Buffer | null, isNew: (page: number) => boolean): Buffer {
  assert.ok(before !== null && after !== null);
  const pages: Buffer[] = [];
  for (let page = 0; page * PAGE_BYTES < after.length; page += 1) {
    const at = page * PAGE_BYTES;
    const from = isNew(page) ? after : before;
    // A later page of the shorter file was not written: the file ends, or has a hole.
    pages.push(from.subarray(at, at + PAGE_BYTES));
  }
  return Buffer.concat(pages);
}

test(
  'a checkpoint that is interrupted between any two pages is completed',
  withMoments(async (history, moments) => {
    const { within, copied } = moments;
    const pages = Math.ceil((copied['']?.length ?? 0) / PAGE_BYTES);
    assert.ok((within['']?.length ?? 0) < (copied['']?.length ?? 0));
    const cuts: ((page: number) => boolean)[] = [
      () => false,
      () => true,
      ...[1, 2, Math.floor(pages / 2), pages - 1].map((end) => (page: number) => page < end),
      (page) => page > 0,
      (page) => page % 2 === 0,
    ];
    for (const [index, isNew] of cuts.entries()) {
      const files = { ...within, '': mixed(within[''], copied[''], isNew) };
      assert.equal(await startWith(history, files, moments), null, `cut ${index}`);
    }
  }),
);

test(
  'without the -wal that its marker names, a file is made again',
  withMoments(async (history, moments) => {
    const { older, before, within, copied } = moments;
    const half = mixed(within[''], copied[''], (page) => page % 2 === 0);
    const salts = Buffer.from(within['-wal'] ?? '');
    salts.writeUInt32BE(1, 16);
    for (const wal of [null, Buffer.alloc(0), salts])
      assert.match(`${await startWith(history, { ...within, '': half, '-wal': wal }, moments)}`, /lost its/);
    const marker = Buffer.from('broken');
    const broken = { ...within, '': half, '-checkpoint': marker };
    assert.match(`${await startWith(history, broken, moments)}`, /lost its/);
    assert.equal(await startWith(history, before, moments), null);
    assert.equal(await startWith(history, older, moments), null);
  }),
);

test(
  'in a checkpoint, another file in its place is found out, also with the same inode',
  withMoments(async (history, moments) => {
    const { older, within, after } = moments;
    const replaced = (file: Files) => startWith(history, { ...within, '': file[''] }, moments);
    assert.match(`${await replaced(older)}`, /was replaced/);
    assert.match(`${await replaced(after)}`, /was replaced/, 'a later one');
    // One that was made from the same entries of the log.
    putFiles(history, older);
    rmSync(history.folder.detections);
    await history.restart();
    history.stop();
    assert.match(`${await replaced(filesOf(history))}`, /was replaced/, 'one that was rebuilt');
  }),
);

test(
  'without a marker, a -wal is dropped, whichever file lies beside it',
  withMoments(async (history, moments) => {
    const { older, before, copied, after } = moments;
    for (const file of [older, before, after]) {
      const files = { '': file[''], '-wal': copied['-wal'], '-checkpoint': null };
      assert.equal(await startWith(history, files, moments), null);
    }
  }),
);

test(
  'a start that is killed while it replaces a file of two states makes it again',
  withMoments(async (history, moments) => {
    const { older, within, copied } = moments;
    const half = mixed(within[''], copied[''], (page) => page % 2 === 0);
    const files = { ...within, '': half, '-wal': null };
    putFiles(history, files);
    const marker = `${history.folder.detections}-checkpoint`;
    const draft = `${history.folder.detections}-draft`;
    let atRename: boolean | null = null;
    // The last turn of a rebuild is just before its rename.
    const between = async () => {
      if (existsSync(draft)) atRename = existsSync(marker);
    };
    await history.restart({ between });
    history.stop();
    assert.equal(atRename, true, 'the marker is there until the file is replaced');
    // The new file has its name, and the marker is still there.
    assert.match(`${await startWith(history, { ...within, '': older[''] }, moments)}`, /was replaced/);
  }),
);
