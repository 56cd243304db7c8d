/** A log with several streams, to remove subscriptions from; created for each test. */
import assert from 'node:assert/strict';
import { cpSync, rmSync, statSync } from 'node:fs';
import { afterEach, beforeEach } from 'node:test';
import { entriesAfter } from '../../src/history/log-reader.ts';
import { recoverDetections } from '../../src/history/recover.ts';
import { scrub } from '../../src/history/scrub.ts';
import { listSegments } from '../../src/history/segment.ts';
import { type DataFolder, dataFolder } from '../../src/store/folder.ts';
import { assertSameContent, type Content, contentOfDatabase } from './database-content.ts';
import { createHistory, type History, type HistoryRow } from './history.ts';

/** Interrupts work, like a stop. */
export class Stopping extends Error {}

export let history: History;
beforeEach(() => startHistory(1024));
afterEach(() => history.delete());

/** Replaces the history by an empty one. */
export async function startHistory(segmentBytes: number): Promise<void> {
  history = await createHistory(segmentBytes);
}

export const EPOCH = `INSERT INTO version_epoch (number, at, position, reason, orphans)
  VALUES ((SELECT count(*) + 1 FROM version_epoch), 1, 1, 'test', 'read')`;

/** Both content types of each of these subscriptions, in turn, so that runs of new detections are of several streams. */
export const rowsOf = (
  subscriptions: readonly number[],
  from: number,
  count: number,
  members: HistoryRow['row'] = {},
): HistoryRow[] =>
  Array.from({ length: count }, (_, index) => ({
    content_type: index % 5 < 2 ? 'image' : 'text',
    row: {
      subscription_id: subscriptions[index % subscriptions.length] ?? 0,
      article_id: from + index,
      ...members,
    },
    ...(index % 4 === 0 ? { given: '2026-11-20T08:10:00Z' } : {}),
    ...(index % 7 === 0 ? { withheld: 'https://print.example/1' } : {}),
  }));

export const again = (minute: number, score?: number) => ({
  last_scored_at: `2026-11-20T09:${minute}:00Z`,
  ...(score === undefined ? {} : { strength_score: score }),
});

/** Streams that are first seen before, between and after those of 7002; corrections, rescorings, a version epoch. */
export async function fill(): Promise<void> {
  const all = [7001, 7002, 7003];
  history.apply(rowsOf([7001], 1, 20));
  history.apply(rowsOf(all, 1000, 120), { batchRows: 50 });
  history.apply(rowsOf(all, 1000, 60, again(10, 90)));
  history.apply(rowsOf(all, 1020, 40, again(11)), { with: (db) => db.exec(EPOCH) });
  await history.restart();
  // Known rows and new ones; then new streams after those of 7002.
  history.apply([...rowsOf(all, 1010, 30, again(12)), ...rowsOf([7002, 7004], 3000, 20)]);
  history.apply(rowsOf(all, 1000, 50, again(13, 70)));
  history.apply(rowsOf([7002], 1000, 30, again(14)));
}

export function contentNow(): Content {
  history.writer().flush();
  return contentOfDatabase(history.db());
}

/** The content of the log alone. */
export async function contentOfLog({ log }: DataFolder = history.folder): Promise<Content> {
  const place = dataFolder(`${history.folder.root}-made`);
  cpSync(log, place.log, { recursive: true });
  try {
    const made = await recoverDetections({
      folder: place,
      program: 'test',
      onReadable: () => {},
      onBegin: () => {},
      onProgress: () => {},
      between: async () => {},
    });
    made.log.close();
    const content = contentOfDatabase(made.db);
    made.db.close();
    return content;
  } finally {
    rmSync(place.root, { recursive: true, force: true });
  }
}

export async function assertClean(): Promise<void> {
  const { findings, not_compared } = await scrub({
    folder: history.folder,
    between: async () => {},
    onProgress: () => {},
  });
  assert.deepEqual({ findings, not_compared }, { findings: [], not_compared: null });
}

export async function assertEqual(what: string): Promise<void> {
  const expected = contentNow();
  assertSameContent(await contentOfLog(), expected, what);
}

export const streamOf = (row: unknown) => {
  const { ordinal, subscription_id, sequence, removed } = Object(row);
  return { ordinal, subscription_id, sequence, removed };
};

/** Lines about detections of a subscription, by entry. */
export function linesOf(subscription: number): number[] {
  const found: number[] = [];
  let entry = 1;
  for (const { part } of entriesAfter(history.folder.log, 'detections', null)) {
    for (const line of part.lines)
      if (new RegExp(`^\\{"\\w+":"[ti]\\.${subscription}\\.`).test(line)) found.push(entry);
    if (part.kind === 'commit') entry = part.commit.entry + 1;
  }
  return found;
}

export const commits = () =>
  [...entriesAfter(history.folder.log, 'detections', null)].flatMap(({ part }) =>
    part.kind === 'commit'
      ? [[part.commit.entry, part.commit.id, part.commit.at, part.commit.operation]]
      : [],
  );
export const segments = () =>
  listSegments(history.folder.log).map(({ path }) => [path, statSync(path).ino, statSync(path).size]);

/** Interrupts a purge at its n-th step, like a stop. @returns whether there was such a step */
export async function purgeUntil(turn: number): Promise<boolean> {
  let turns = 0;
  try {
    await history.purge(async () => {
      turns += 1;
      if (turns === turn) throw new Stopping();
    });
    return false;
  } catch (error) {
    if (!(error instanceof Stopping)) throw error;
    return true;
  }
}
