/**
 * Brings a copy up to date: writes the entries of the log that it lacks, and `access.db` if it changed.
 *
 * The next entry's number can be created once, and whoever creates it is the writer; there is no other rule. An entry
 * counts once a listing after its creation shows nothing beyond it: a number that was merged and deleted could be created
 * again, by a machine that did not see it. Whatever is found there is read, and must be in the log of this machine.
 */
import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FoundCopy } from '../auth/spare-copy.ts';
import type { Mark } from '../log/format.ts';
import { commitsBackwards, entriesAfter, placeOf, type ReadTo } from '../log/log-reader.ts';
import { entriesOf, listSegments, type Segment } from '../log/segment.ts';
import { failed, Refused } from '../refused.ts';
import type { DataFolder } from '../store/folder.ts';
import { isLogError, LogDamage } from '../store/log-errors.ts';
import { ensureRole, keptCopies, noteKept, PROMOTE, RESTORE, readRole } from '../store/role.ts';
import {
  type CopiedLog,
  commitsIn,
  deleteBefore,
  discard,
  FRAMES_A_TURN,
  findLog,
  generationAfter,
  type LogObject,
  mergedName,
  objectsFrom,
  partName,
  pieceNames,
  pointerContent,
} from './copy-contents.ts';
import { left, requireEarlierAccess, requireOwn, type SoundAccess, writeAccess } from './own-copy.ts';
import type { Place } from './place.ts';

const PART_BYTES = 8 * 1024 * 1024;
/** A closed segment with more parts than this becomes one object. */
const PARTS_MAX = 8;

/** Where a generation of a copy ends. `newest`: the name of the object with its last entry, '' without entries. */
type CopyEnd = Readonly<{ generation: string; newest: string; first: number | null; last: Mark | null }>;

/** Another machine was promoted, or restored the copy, and writes it. */
export class TakenOver extends Refused {
  /** That machine, when, in words. */
  readonly by: string;

  constructor({ text }: Place, by: string) {
    super(
      'failed',
      `${text} is left as it is: ${by}. Send clients to that machine; to make this one its standby, set [copy] standby, and run: wirewatch restore ${text} --replace`,
    );
    this.by = by;
  }
}

/**
 * @param kept the ids that are noted of the copy, also where the log is damaged; undefined: it has no note here, as after a
 *   restore with --until. Then an earlier promotion or restore of this machine may be there
 * @throws TakenOver if another machine says that it became the writer behind what this one has, or wrote there; Unreachable,
 *   LogDamage
 */
export async function refuseTakenOver(copied: CopiedLog, folder: DataFolder, kept: string[] | undefined) {
  const { place, objects, begunBy } = copied;
  const { machine } = readRole(folder);
  const [end] = commitsBackwards(folder.log).take(1);
  for (const { name } of objects.toReversed())
    for (const { operation, at, ...mark } of (await commitsIn(place, name)).toReversed()) {
      if (kept?.includes(mark.id)) return;
      if (end !== undefined && mark.entry <= end.entry && placeOf(folder.log, mark) === 'known') return;
      const { kind, machine: by, host = 'another machine' } = operation;
      // With a note, one of this machine is of a clone of its data folder.
      if (kind === PROMOTE && by === machine && kept === undefined) return;
      if (kind === PROMOTE) throw new TakenOver(place, `machine ${by} took over at ${at}`);
      if (kind === RESTORE && kept !== undefined)
        throw new TakenOver(place, `the copy was restored on ${host} at ${at}`);
    }
  if (begunBy !== null && begunBy !== machine) throw new TakenOver(place, `machine ${begunBy} took over`);
}

export type Shipper = ReturnType<typeof createShipper>;

/**
 * Writes to one place; after an error, another one begins.
 *
 * `isAnew`: all of the log is written anew, because objects of the copy are damaged; `mayBeginAnew`: a new copy also where
 * one was kept and none is; entries that are larger than `partBytes` are written in pieces.
 */
export function createShipper(
  place: Place,
  folder: DataFolder,
  { isAnew = false, mayBeginAnew = false, partBytes = PART_BYTES } = {},
) {
  /** The end that was read or written last; null: it must be read. */
  let known: CopyEnd | null = null;
  let shippedTo: ReadTo | null = null;
  /** Its id, once that was read. */
  let copy = '';
  /** The change of access.db that the copy has; null: not known. */
  let change: number | null = null;

  /**
   * @param access the state of access.db, found before `end` was: a removal that it no longer has open is in the log
   * @param end the last entry to write, which the database has applied; null: there is none, and the copy must have none
   * @throws Unreachable; Refused `failed` if the copy is not an earlier state of this installation; LogDamage if the log of
   *   this machine is damaged, or the end of the copy is, and another machine may have written it
   */
  async function ship(access: FoundCopy, end: Mark | null): Promise<void> {
    if (access.kind !== 'sound')
      throw failed(
        `${folder.access} and its spare copy are damaged or missing. To see more: wirewatch verify`,
      );
    while (!(await shipLog(end, access)));
    if (change === access.state.change) return;
    await writeAccess(place, access);
    change = access.state.change;
  }

  /** @returns false: another process wrote meanwhile, and it must be tried again */
  async function shipLog(to: Mark | null, access: SoundAccess): Promise<boolean> {
    if (known !== null) {
      // Another machine may have taken the next number meanwhile, also where there is nothing to write; or a share is not
      // mounted any more.
      const { generation, newest } = known;
      const there = await place.list(`log/${generation}/`, newest.replace('.zst', ''));
      if (there.join() !== newest) known = null;
    }
    known ??= await findEnd(access);
    if (to === null) return true;
    const { first, last } = known;
    const begin = listSegments(folder.log)[0]?.firstEntry ?? 1;
    // The log was compacted.
    if (first !== null && (begin > first || isAnew)) known = await beginGeneration(known, to);
    else if ((last?.entry ?? 0) < to.entry) known = await shipAfter(known, to);
    return known !== null;
  }

  /** @throws Refused `failed` if the copy has entries or changes that this machine lacks */
  async function findEnd({ state, content }: SoundAccess): Promise<CopyEnd> {
    ensureRole(folder);
    copy = await requireOwn(place, folder, state.installation, mayBeginAnew);
    mayBeginAnew = false;
    const copied = await findLog(place);
    const { generation, changes, objects } = copied;
    if (changes.length > 0) await deleteBefore(copied);
    // Where a snapshot has taken the place of its last entry, only the note tells whose it is.
    const kept = keptCopies(folder).get(copy)?.ids;
    const newest = objects.at(-1);
    const last = newest === undefined ? null : await lastIn(newest, kept ?? []);
    const found = last === null ? 'known' : placeOf(folder.log, last);
    if (found !== 'known' && (found !== 'before' || !kept?.includes(last?.id ?? ''))) {
      await refuseTakenOver(copied, folder, kept);
      throw left(
        place,
        `it is the copy of a later state of this installation, or of one that was discarded by a restore. To go on from that state, run: wirewatch restore ${place.text} --replace`,
      );
    }
    // What the writer before a promotion still changed is not carried on.
    if (!readRole(folder).promoted) await requireEarlierAccess(place, content);
    return { generation, newest: newest?.name ?? '', first: objects[0]?.first ?? null, last };
  }

  /** The last entry in the newest object. Where that is damaged, and this machine wrote it, all is written anew. */
  async function lastIn({ name, first }: LogObject, noted: readonly string[]): Promise<Mark | null> {
    try {
      return (await commitsIn(place, name)).at(-1) ?? null;
    } catch (error) {
      const own = commitsBackwards(folder.log).find(({ id }) => noted.includes(id));
      const isOwn = own !== undefined && own.entry >= first;
      // Another process may have put a larger object in its place meanwhile.
      if (!isLogError(error) || !isOwn || (await place.read(name)) === null) throw error;
      isAnew = true;
      return own;
    }
  }

  /**
   * Writes the entries after the end of a generation, up to one: in parts, and in pieces what is too large for one.
   * @param isDraft whether the generation is not in use yet
   * @returns where it ends then; null: another process wrote meanwhile
   */
  async function shipAfter(begin: CopyEnd, to: Mark, isDraft = false): Promise<CopyEnd | null> {
    const { generation } = begin;
    let end = begin;
    let pieces: string[] = [];
    for await (const { segment, first, frames, readTo } of batches(begin.last, to)) {
      let content: Uint8Array = Buffer.concat(frames);
      if (first === segment.firstEntry && pieces.length === 0 && end.last !== null)
        await mergeBefore(generation, segment, end.last);
      if (readTo === null || pieces.length > 0) {
        pieces.push(`${pieceNames(generation, first)}${randomBytes(8).toString('hex')}.zst`);
        await place.create(pieces.at(-1) ?? '', content).catch(async (error) => {
          await discard(place, pieces);
          throw error;
        });
      }
      if (readTo === null) continue;
      const { last } = readTo;
      if (!isDraft) noteKept(folder, { copy, to: place.text }, [end.last, last]);
      if (pieces.length > 0) content = pointerContent({ large: pieces });
      if (!(await claim(generation, first, content))) return null;
      // Those of earlier attempts. Where the claim is lost, an answer may be: then the part that has them is there.
      if (pieces.length > 0) await discard(place, [pieceNames(generation, first)], pieces);
      end = { generation, newest: partName(generation, first), first: end.first ?? first, last };
      [shippedTo, pieces] = [readTo, []];
    }
    return end;
  }

  /**
   * What objects get: whole entries of one segment, or a piece of them, behind which they go on.
   * @returns `first`: the first entry; `readTo`: where the last one ends; null: in a later piece
   */
  async function* batches(after: Mark | null, to: Mark) {
    type Batch = { segment: Segment; first: number; frames: Buffer[]; bytes: number; readTo: ReadTo | null };
    let batch: Batch | null = null;
    let isInPieces = false;
    for (const { segment, part } of entriesAfter(folder.log, after, shippedTo)) {
      const { frame, commit } = part;
      if (batch !== null && batch.segment.path !== segment.path) {
        yield batch;
        batch = null;
      }
      batch ??= { segment, first: part.entry, frames: [], bytes: 0, readTo: null };
      batch.frames.push(frame.bytes);
      batch.bytes += frame.bytes.length;
      batch.readTo = commit && { path: segment.path, last: commit, end: frame.end };
      if (batch.frames.length % FRAMES_A_TURN === 0) await nextTurn();
      const isEnd = commit !== null && commit.entry >= to.entry;
      if (isEnd || batch.bytes >= partBytes || (commit !== null && isInPieces)) {
        yield batch;
        isInPieces = commit === null;
        batch = isInPieces ? { ...batch, frames: [], bytes: 0 } : null;
      }
      if (isEnd) return;
    }
    throw new LogDamage(`the log ends before entry ${to.entry}`);
  }

  /** Creates the next part. @returns false if it, or something beyond it, was there already */
  async function claim(generation: string, first: number, content: Uint8Array): Promise<boolean> {
    const name = partName(generation, first);
    if (!(await place.create(name, content))) return false;
    const beyond = await objectsFrom(place, generation, first);
    return beyond.every((other) => other.name === name);
  }

  /** Makes one object of the parts of the closed segment before one; then the parts go. @param last its last entry */
  async function mergeBefore(generation: string, { firstEntry }: Segment, last: Mark): Promise<void> {
    const segment = listSegments(folder.log).findLast((other) => other.firstEntry < firstEntry);
    if (segment === undefined) return;
    const begin = segment.firstEntry;
    const merged = mergedName(generation, begin, last.entry);
    const objects = await objectsFrom(place, generation, begin);
    const there = objects.filter((object) => object.first <= last.entry);
    // An earlier log with other segments was merged: two such objects must not overlap.
    if (there.some((object) => object.last !== null && object.name !== merged)) return;
    const parts = there.filter((object) => object.last === null);
    const newest = parts.at(-1);
    if (newest === undefined || parts.length <= PARTS_MAX || parts[0]?.first !== begin) return;
    // Entries in pieces stay so: as one object they could be larger than memory.
    const [piece] = await place.list(`large/${generation}/`, pieceNames(generation, begin));
    if (piece !== undefined && piece < pieceNames(generation, firstEntry)) return;
    // Where an earlier log had other segments, a part may reach beyond this one.
    if ((await commitsIn(place, newest.name)).at(-1)?.id !== last.id) return;
    await place.create(merged, await entriesOf(segment, last));
    for (const { name } of parts) await place.delete(name);
  }

  /** Writes the log beside the old objects, and then the part that leads to it. @returns null: the end must be read */
  async function beginGeneration(old: CopyEnd, to: Mark): Promise<null> {
    const generation = generationAfter(old.generation);
    const begin = { generation, newest: '', first: null, last: null };
    const made = await shipAfter(begin, to, true).catch(async (error) => {
      await discard(place, [`log/${generation}/`, `large/${generation}/`]);
      throw error;
    });
    if (made === null) return null;
    noteKept(folder, { copy, to: place.text }, [old.last, made.last]);
    const content = pointerContent({ generation, machine: readRole(folder).machine });
    if (await claim(old.generation, (old.last?.entry ?? 0) + 1, content)) isAnew = false;
    return null;
  }

  return { place, ship };
}
