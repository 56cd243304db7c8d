/**
 * What is made of a copy: a new installation, the snapshot of a new generation, and what is damaged in the log of this
 * machine. The copy has the entries byte for byte, so what is made of them joins its neighbours.
 */
import { mkdirSync, renameSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { grouped } from '../counted.ts';
import type { Commit } from '../log/format.ts';
import { isBeginning, newestCommits } from '../log/log-reader.ts';
import { LogWriter } from '../log/log-writer.ts';
import { draftOf, EntryReader, listSegments, type Segment, segmentPath, tidyLog } from '../log/segment.ts';
import { failed, Refused, reasonOf } from '../refused.ts';
import { type DataFolder, syncFolder, writeWhole } from '../store/folder.ts';
import { isLogError } from '../store/log-errors.ts';
import { type LogMark, readLogMarkOf } from '../store/log-mark.ts';
import { VERSION } from '../version.ts';
import { commitsIn, entriesIn, findLog } from './copied-log.ts';
import type { LogObject } from './names.ts';
import { openPlace } from './open-place.ts';
import { ownerOf, readCopiedAccess, readCopiedSecret } from './own-copy.ts';
import { isBucket, type Place, type PlaceSettings } from './place.ts';

type OnProgress = (what: string, done: number, total: number) => void;

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
  await writeEntries(place, objects, { folder: stage.log }, all, progressOf(objects, onProgress));
  return (await ownerOf(place))?.copy ?? '';
}

/** Reads all of a copy. @throws Unreachable */
export async function verifyCopy(place: Place, onProgress: OnProgress): Promise<VerifiedCopy> {
  const findings: string[] = [];
  let entries = 0;
  const readLog = async () => {
    const { objects } = await findLog(place);
    for await (const { commit } of entriesIn(place, objects, null, progressOf(objects, onProgress)))
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

function progressOf({ length }: readonly unknown[], onProgress: OnProgress): (done: number) => void {
  return (done) => onProgress('reading the copy', done, length);
}

/** The first and the last entry, by their numbers; `last` infinite: all that the copy has. */
interface Range {
  readonly first: number;
  readonly last: number;
}

/** The ends of a part of a log; null: it has no entry. */
interface Ends {
  readonly first: Commit | null;
  readonly last: Commit | null;
}

/** Writes entries of a copy into a folder for segments, durably. @throws Unreachable, LogDamage, LogFailure */
async function writeEntries(
  place: Place,
  objects: readonly LogObject[],
  options: { readonly folder: string; readonly segmentBytes?: number },
  { first, last }: Range,
  onObject?: (done: number) => void,
): Promise<Ends> {
  const before = { entry: first - 1, id: '' };
  const log = new LogWriter({ ...options, program: VERSION }, { last: before, segment: null });
  const begin = objects.findLastIndex((object) => object.first <= first);
  const ends: Commit[] = [];
  try {
    const read = entriesIn(place, objects.slice(Math.max(0, begin)), begin > 0 ? undefined : null, onObject);
    for await (const { frame, entry, commit } of read) {
      if (entry > last) break;
      if (entry < first) continue;
      log.adopt(frame.bytes, commit);
      if (commit !== null) ends.splice(1, 1, commit);
    }
    log.closeDurably();
  } catch (error) {
    log.close();
    throw error;
  }
  return { first: ends[0] ?? null, last: ends.at(-1) ?? null };
}

/** Writes a segment into the folder for drafts, durably. @throws Unreachable, LogDamage, LogFailure */
export function draftSegment(
  place: Place,
  objects: readonly LogObject[],
  log: string,
  range: Range,
): Promise<Ends> {
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
  const segments = new Map(listSegments(log).map((segment) => [segment.firstEntry, segment]));
  const starts = [...segments.keys()];
  const begin = objects[0]?.first ?? 1;
  if (begin < (starts[0] ?? Number.POSITIVE_INFINITY)) starts.unshift(begin);
  const healed: string[] = [];
  let before: Commit | null = null;
  for (const [index, first] of starts.entries()) {
    const last = (starts[index + 1] ?? Number.POSITIVE_INFINITY) - 1;
    const needed = Number.isFinite(last) ? last : Math.max(0, ...newest.map(({ entry }) => entry));
    const isComplete = (ends: Ends) =>
      ends.first === null || ends.last === null
        ? needed < first
        : ends.last.entry >= needed &&
          (before === null ? isBeginning(ends.first) : ends.first.after === before.id);
    const segment = segments.get(first);
    let ends = segment === undefined ? null : endsOf(segment);
    if (ends === null || !isComplete(ends)) {
      ends = await draftSegment(place, objects, log, { first, last });
      if (ends.first === null || !isComplete(ends))
        throw failed(`the copy lacks entries of ${segment?.path ?? log} that are damaged or missing.`);
      const made = segmentPath(log, first);
      const path = segment?.path ?? (first > 1 ? made.replace('.zst', '-snapshot.zst') : made);
      renameSync(segmentPath(draftOf(log), first), path);
      syncFolder(log);
      healed.push(path);
    }
    before = ends.last ?? before;
  }
  tidyLog(log);
  return healed;
}

/** @throws Refused `failed` if the copy lacks the newest entry that is known here; Unreachable, LogDamage */
export async function requireNewest(
  place: Place,
  { log, detections }: DataFolder,
): Promise<{ readonly objects: readonly LogObject[]; readonly newest: readonly LogMark[] }> {
  const { objects } = await findLog(place);
  const search = { before: Number.POSITIVE_INFINITY, limit: 1, segmentsMax: 2 };
  const newest: LogMark[] = newestCommits(log, search, () => true).commits;
  newest.push(...[readLogMarkOf(detections)].filter((mark) => mark !== null));
  for (const mark of newest)
    if (!(await hasEntry(place, objects, mark)))
      throw failed(`the copy lacks entry ${grouped(mark.entry)}, which this machine has.`);
  return { objects, newest };
}

/** Whether a copy has an entry. @throws Unreachable, LogDamage */
export async function hasEntry(
  place: Place,
  objects: readonly LogObject[],
  { entry, id }: LogMark,
): Promise<boolean> {
  const object = objects.findLast(({ first }) => first <= entry);
  return object !== undefined && (await commitsIn(place, object.name)).some((commit) => commit.id === id);
}

/** @returns null if something in it is damaged; a torn end is no damage */
function endsOf(segment: Segment): Ends | null {
  let first: Commit | null = null;
  try {
    using reader = new EntryReader(segment);
    while (reader.next(reader.last ?? undefined) !== null) first ??= reader.last;
    const isTorn = reader.isWhole || reader.commitsBehind().next().done === true;
    return isTorn ? { first, last: reader.last } : null;
  } catch (error) {
    if (!isLogError(error)) throw error;
    return null;
  }
}
