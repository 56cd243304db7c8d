/** What is made of a copy, which has entries byte for byte: an installation, and a log that is damaged or was not compacted. */
import { mkdirSync, rmSync } from 'node:fs';
import { grouped } from '../counted.ts';
import type { Mark } from '../log/format.ts';
import { commitsBackwards } from '../log/log-reader.ts';
import { logWriter } from '../log/log-writer.ts';
import { draftOf, takeDraft, tidyLog } from '../log/segment.ts';
import { clauseOf, failed, Refused, reasonOf } from '../refused.ts';
import { type DataFolder, writeWhole } from '../store/folder.ts';
import { isLogError, LogDamage } from '../store/log-errors.ts';
import { readLogMarkOf, waitsForCopyIn } from '../store/log-mark.ts';
import { keptCopies } from '../store/role.ts';
import { type CopiedLog, commitsIn, entriesIn, findLog, type OnProgress } from './copy-contents.ts';
import { openPlace } from './open-place.ts';
import { ownerOf, readCopiedAccess, readCopiedSecret } from './own-copy.ts';
import type { Place, PlaceSettings } from './place.ts';
import { refuseTakenOver } from './ship.ts';

/** @param given a folder, or `s3://bucket/prefix` @throws Refused `failed` if there is no copy, or it cannot be read */
export async function openCopy(given: string, settings: PlaceSettings): Promise<Place> {
  try {
    const place = await openPlace(given, settings);
    if ((await ownerOf(place)) === null) throw new Error('it contains no copy');
    return place;
  } catch (error) {
    throw failed(`cannot read the copy ${given}: ${clauseOf(error, given)}.`, { cause: error });
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
  for (let isAgain = false; ; isAgain = true)
    try {
      rmSync(stage.log, { recursive: true, force: true });
      mkdirSync(stage.log, { mode: 0o700 });
      await writeLog(await findLog(place), stage.log, onProgress);
      return (await ownerOf(place))?.copy ?? '';
    } catch (error) {
      // An object may have gone meanwhile, with another in its place.
      if (isAgain || !(error instanceof LogDamage)) throw error;
    }
}

/**
 * Reads all of a copy; again where something is wrong with it, since an object may have gone meanwhile, with another in its
 * place.
 * @param written the last entry that it must have
 * @returns the number of the last entry of the log, and what is wrong with it, in words
 * @throws Unreachable
 */
export async function verifyCopy(place: Place, onProgress: OnProgress, written = 0) {
  for (let isAgain = false; ; isAgain = true) {
    const findings: string[] = [];
    let entries = 0;
    const readLog = async () => {
      for await (const { commit } of entriesIn(await findLog(place), null, onProgress))
        entries = commit?.entry ?? entries;
    };
    for (const read of [() => readCopiedAccess(place), () => readCopiedSecret(place), readLog])
      try {
        await read();
      } catch (error) {
        if (!isLogError(error) && !(error instanceof Refused)) throw error;
        findings.push(reasonOf(error));
      }
    if (isAgain || (findings.length === 0 && entries >= written)) return { entries, findings };
  }
}

/** Durably. @throws Unreachable, LogDamage, LogFailure */
async function writeLog(copied: CopiedLog, folder: string, onProgress?: OnProgress) {
  const last = { entry: (copied.objects[0]?.first ?? 1) - 1, id: '' };
  const log = logWriter({ folder }, { last, segment: null });
  try {
    for await (const part of entriesIn(copied, null, onProgress)) log.adopt(part);
    log.sync();
  } finally {
    log.close();
  }
}

/**
 * Puts the log of a copy in place of the local one.
 * @param onRead called once it is on the disk, and before it is in place
 * @throws Unreachable, LogDamage, LogFailure
 */
export async function takeLog(copied: CopiedLog, log: string, onRead = () => {}) {
  tidyLog(log);
  await writeLog(copied, draftOf(log));
  onRead();
  takeDraft(log, copied.objects[0]?.first ?? 1);
}

/**
 * @param isStandby whether this machine is one: then what another one wrote is what it needs
 * @throws Refused `failed` if the copy lacks the newest entry that is known here, or ends with one that is not of this
 *   machine; TakenOver if another one says there that it writes; Unreachable, LogDamage
 */
export async function requireNewest(place: Place, folder: DataFolder, isStandby: boolean) {
  const { log, detections } = folder;
  const copied = await findLog(place);
  // What waits for the copy, and is not applied, is only proposed: the copy may lack it.
  const proposed = waitsForCopyIn(detections) ? [] : commitsBackwards(log).take(1);
  const marks = [...proposed, readLogMarkOf(detections)].filter((mark) => mark !== null);
  for (const mark of marks)
    if (!(await hasEntry(copied, mark)))
      throw failed(`the copy lacks entry ${grouped(mark.entry)}, which this machine has.`);
  const newest = copied.objects.at(-1);
  if (isStandby || newest === undefined) return copied;
  const kept = [...keptCopies(folder).values()].flatMap(({ ids }) => ids);
  const end = (await commitsIn(place, newest.name)).at(-1)?.id ?? '';
  if (kept.includes(end) || marks.some(({ id }) => id === end)) return copied;
  if (kept.length > 0) await refuseTakenOver(copied, folder, kept);
  throw failed('the copy has entries behind those that this machine has, or wrote there.');
}

/** That a damaged log can be made anew from a copy, of which all is read. @throws as {@link requireNewest} */
export async function requireHealing(place: Place, folder: DataFolder, isStandby: boolean): Promise<void> {
  for await (const _ of entriesIn(await requireNewest(place, folder, isStandby), null));
  // Meanwhile this machine may have written more than the copy.
  await requireNewest(place, folder, isStandby);
}

/** Whether a copy has an entry. @throws Unreachable, LogDamage */
export async function hasEntry({ place, objects }: CopiedLog, { entry, id }: Mark) {
  const object = objects.findLast(({ first }) => first <= entry);
  return object !== undefined && (await commitsIn(place, object.name)).some((commit) => commit.id === id);
}
