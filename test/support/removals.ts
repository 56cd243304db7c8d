import { cpSync, rmSync } from 'node:fs';
import { entriesAfter } from '../../src/log/log-reader.ts';
import { recoverDetections } from '../../src/log/recover.ts';
import { type DataFolder, dataFolder } from '../../src/store/folder.ts';
import { assertSameContent, type Content, contentOfDatabase } from './database-content.ts';
import { createHistory, type History, QUIETLY, variedRows } from './history.ts';
import { assertClean as assertCleanOf } from './scrub.ts';

/** Thrown to interrupt work, as a stop does. */
export class Stopping extends Error {}

export let history: History;

/** Replaces the history by an empty one. */
export async function startHistory(segmentBytes: number): Promise<void> {
  history = await createHistory(segmentBytes);
}

export const EPOCH = `INSERT INTO version_epoch (number, at, position, reason, orphans)
  VALUES ((SELECT count(*) + 1 FROM version_epoch), 1, 1, 'test', 'read')`;

export const rowsOf = variedRows;

export const rescored = (minute: number, score?: number) => ({
  last_scored_at: `2026-11-20T09:${minute}:00Z`,
  ...(score === undefined ? {} : { strength_score: score }),
});

/** Creates streams before, between and after those of 7002, corrections, rescorings and a version epoch. */
export async function fill(): Promise<void> {
  const all = [7001, 7002, 7003];
  history.apply(rowsOf([7001], 1, 20));
  history.apply(rowsOf(all, 1000, 120), { batchRows: 50 });
  history.apply(rowsOf(all, 1000, 60, rescored(10, 90)));
  history.apply(rowsOf(all, 1020, 40, rescored(11)), { with: (db) => db.exec(EPOCH) });
  await history.restart();
  // Known and new rows, and new streams after those of 7002.
  history.apply([...rowsOf(all, 1010, 30, rescored(12)), ...rowsOf([7002, 7004], 3000, 20)]);
  history.apply(rowsOf(all, 1000, 50, rescored(13, 70)));
  history.apply(rowsOf([7002], 1000, 30, rescored(14)));
}

export function contentNow(): Content {
  history.writer().flush();
  return contentOfDatabase(history.db());
}

/** The content of a database rebuilt from the log alone. */
export async function contentOfLog({ log }: DataFolder = history.folder): Promise<Content> {
  const place = dataFolder(`${history.folder.root}-made`);
  cpSync(log, place.log, { recursive: true });
  try {
    const made = await recoverDetections({ folder: place, ...QUIETLY });
    made.log.close();
    const content = contentOfDatabase(made.db);
    made.db.close();
    return content;
  } finally {
    rmSync(place.root, { recursive: true, force: true });
  }
}

export const assertClean = () => assertCleanOf(history, '');

export async function assertEqual(what: string): Promise<void> {
  const expected = contentNow();
  assertSameContent(await contentOfLog(), expected, what);
}

/** How many lines of the log are about detections of a subscription. */
export function linesOf(subscription: number): number {
  const beginning = new RegExp(`^\\{"\\w+":"[ti]\\.${subscription}\\.`);
  const lines = [...entriesAfter(history.folder.log, null)].flatMap(({ part }) => part.lines);
  return lines.filter((line) => beginning.test(line)).length;
}

/** Interrupts a compaction at its n-th step, as a stop does. @returns whether it has this step */
export async function compactUntil(turn: number, atStep = async () => {}): Promise<boolean> {
  let turns = 0;
  try {
    await history.compact(async () => {
      turns += 1;
      await atStep();
      if (turns === turn) throw new Stopping();
    });
    return false;
  } catch (error) {
    if (!(error instanceof Stopping)) throw error;
    return true;
  }
}
