/**
 * What is made of a copy: a new installation, the snapshot of a new generation, and what is damaged in the log of this
 * machine. The copy has the entries byte for byte, so what is made of them joins its neighbours.
 */
import { mkdirSync, renameSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { grouped } from '../counted.ts';
import type { Mark } from '../log/format.ts';
import { commitsBackwards } from '../log/log-reader.ts';
import { LogWriter } from '../log/log-writer.ts';
import { draftOf, listSegments, type Segment, SegmentReader, segmentPath, tidyLog } from '../log/segment.ts';
import { failed, Refused, reasonOf } from '../refused.ts';
import { type DataFolder, syncFolder, writeWhole } from '../store/folder.ts';
import { isLogError } from '../store/log-errors.ts';
import { readLogMarkOf } from '../store/log-mark.ts';
import { VERSION } from '../version.ts';
import { commitsIn, entriesIn, findLog, type LogObject, type OnProgress } from './copy-contents.ts';
import { openPlace } from './open-place.ts';
import { ownerOf, readCopiedAccess, readCopiedSecret } from './own-copy.ts';
import { isBucket, type Place, type PlaceSettings } from './place.ts';

export interface VerifiedCopy {
  /** The number of the last entry of the log. */
  readonly entries: number;
  /** What is wrong with it, in words; empty if nothing is. */
  readonly findings: readonly string[];
}

/**
 * @param given a folder, or `s3://bucket/prefix`
 * @throws Refused `failed` if there is no copy, or it cannot be read
 */
export async function openCopy(given: string, settings: PlaceSettings): Promise<Place> {
  const text = isBucket(given) ? given : resolve(given);
  try {
    if (!isBucket(text) && !statSync(text).isDirectory())
      throw failed(`${text} cannot be a copy: a copy is a folder`);
    const place = await openPlace(text, settings);
    if ((await ownerOf(place)) === null) throw new Error('it contains no copy');
    return place;
  } catch (error) {
    if (error instanceof Refused && error.code !== 'failed') throw error;
    throw failed(`cannot read the copy ${text}: ${reasonOf(error, text)}.`, { cause: error });
  }
}

/**
 * Writes the access.db, secret and log of a copy into an empty folder.
 * @returns the id of the copy
 * @throws Refused `failed`, LogDamage, whose text follows the name of the copy; Unreachable
 */
export async function loadCopy(place: Place, stage: DataFolder, onProgress: OnProgress): Promise<string> {
  // In this order: what access.db says is in a log that is read later.
  const { content } = await readCopiedAccess(place);
  writeWhole(stage.access, content);
  writeWhole(stage.secret, await readCopiedSecret(place));
  mkdirSync(stage.log, { mode: 0o700 });
  const { objects } = await findLog(place);
  const all = { first: objects[0]?.first ?? 1, last: Number.POSITIVE_INFINITY };
  await writeEntries(place, objects, { folder: stage.log }, all, onProgress);
  return (await ownerOf(place))?.copy ?? '';
}

/** Reads all of a copy. @throws Unreachable */
export async function verifyCopy(place: Place, onProgress: OnProgress): Promise<VerifiedCopy> {
  const findings: string[] = [];
  let entries = 0;
  const readLog = async () => {
    const { objects } = await findLog(place);
    for await (const { commit } of entriesIn(place, objects, null, onProgress))
      entries = commit?.entry ?? entries;
  };
  for (const read of [() => readCopiedAccess(place), () => readCopiedSecret(place), readLog])
    try {
      await read();
    } catch (error) {
      if (!isLogError(error) && !(error instanceof Refused)) throw error;
      findings.push(reasonOf(error));
    }
  return { entries, findings };
}

/** The first and the last entry, by their numbers; `last` infinite: all that the copy has. */
type Range = Readonly<Record<'first' | 'last', number>>;

/**
 * Writes entries of a copy into a folder for segments, durably.
 * @returns the number of the last one; 0: the copy has none of them
 * @throws Unreachable, LogDamage, LogFailure
 */
async function writeEntries(
  place: Place,
  objects: readonly LogObject[],
  options: { readonly folder: string; readonly segmentBytes?: number },
  { first, last }: Range,
  onProgress?: OnProgress,
): Promise<number> {
  const before = { entry: first - 1, id: '' };
  const log = new LogWriter({ ...options, program: VERSION }, { last: before, segment: null });
  const begin = objects.findLastIndex((object) => object.first <= first);
  let written = 0;
  try {
    const read = entriesIn(
      place,
      objects.slice(Math.max(0, begin)),
      begin > 0 ? undefined : null,
      onProgress,
    );
    for await (const part of read) {
      if (part.entry > last) break;
      if (part.entry < first) continue;
      log.adopt(part);
      written = part.commit?.entry ?? written;
    }
    log.closeDurably();
  } catch (error) {
    log.close();
    throw error;
  }
  return written;
}

/** Writes a segment into the folder for drafts, durably. @returns its last entry, or 0. @throws Unreachable, LogDamage, LogFailure */
export function draftSegment(
  place: Place,
  objects: readonly LogObject[],
  log: string,
  range: Range,
): Promise<number> {
  tidyLog(log);
  const options = { folder: draftOf(log), segmentBytes: Number.POSITIVE_INFINITY };
  return writeEntries(place, objects, options, range);
}

/**
 * Makes damaged and missing parts of the local log anew from the copy; a crash leaves each as it was, or made anew.
 * @returns the files that were made anew
 * @throws Refused `failed` if the copy lacks the newest entry that is known here; Unreachable, LogDamage, LogFailure
 */
export async function healLog(place: Place, folder: DataFolder): Promise<string[]> {
  const { log } = folder;
  const { objects, newest } = await requireNewest(place, folder);
  const paths = new Map(listSegments(log).map(({ firstEntry, path }) => [firstEntry, path]));
  const begin = objects[0]?.first ?? 1;
  const starts = [...new Set([Math.min(begin, ...paths.keys()), ...paths.keys()])];
  const healed: string[] = [];
  for (const [index, first] of starts.entries()) {
    const last = (starts[index + 1] ?? Number.POSITIVE_INFINITY) - 1;
    const needed = Math.min(last, newest);
    const path = paths.get(first);
    if (path !== undefined && soundEnd({ path, firstEntry: first }) >= needed) continue;
    const made = segmentPath(log, first);
    if ((await draftSegment(place, objects, log, { first, last })) < Math.max(first, needed))
      throw failed(`the copy lacks entries of ${path ?? log} that are damaged or missing.`);
    const healedPath = path ?? (first > 1 ? made.replace('.zst', '-snapshot.zst') : made);
    renameSync(segmentPath(draftOf(log), first), healedPath);
    syncFolder(log);
    healed.push(healedPath);
  }
  tidyLog(log);
  return healed;
}

/**
 * @returns the objects with the log, and the number of that entry
 * @throws Refused `failed` if the copy lacks the newest entry that is known here; Unreachable, LogDamage
 */
export async function requireNewest(
  place: Place,
  { log, detections }: DataFolder,
): Promise<{ readonly objects: readonly LogObject[]; readonly newest: number }> {
  const { objects } = await findLog(place);
  const newest = [...commitsBackwards(log).take(1), readLogMarkOf(detections)].filter(
    (mark) => mark !== null,
  );
  for (const mark of newest)
    if (!(await hasEntry(place, objects, mark)))
      throw failed(`the copy lacks entry ${grouped(mark.entry)}, which this machine has.`);
  return { objects, newest: Math.max(0, ...newest.map(({ entry }) => entry)) };
}

/** Whether a copy has an entry. @throws Unreachable, LogDamage */
export async function hasEntry(
  place: Place,
  objects: readonly LogObject[],
  { entry, id }: Mark,
): Promise<boolean> {
  const object = objects.findLast(({ first }) => first <= entry);
  return object !== undefined && (await commitsIn(place, object.name)).some((commit) => commit.id === id);
}

/** The number of the last entry of a segment; -1: something in it is damaged. A torn end is no damage. */
function soundEnd(segment: Segment): number {
  try {
    using reader = new SegmentReader(segment);
    while (reader.next() !== null);
    const isSound = reader.isWhole || reader.commitsBehind().next().done === true;
    return isSound ? (reader.last?.entry ?? segment.firstEntry - 1) : -1;
  } catch (error) {
    if (!isLogError(error)) throw error;
    return -1;
  }
}
