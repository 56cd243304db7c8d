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
import { entriesAfter, placeOf } from '../log/log-reader.ts';
import { listSegments, type Segment, SegmentReader } from '../log/segment.ts';
import { failed, Refused } from '../refused.ts';
import type { DataFolder } from '../store/folder.ts';
import { LogDamage } from '../store/log-errors.ts';
import { ensureRole, keptCopies, noteKept, PROMOTE, readRole } from '../store/role.ts';
import {
  commitsIn,
  deleteBefore,
  findLog,
  mergedName,
  namesFrom,
  newGeneration,
  parseLogName,
  partName,
  pieceName,
  piecesOf,
  pointerContent,
} from './copy-contents.ts';
import { left, requireOwn, writeAccess } from './own-copy.ts';
import type { Place } from './place.ts';
import { verifyCopy } from './source.ts';

const PART_BYTES = 8 * 1024 * 1024;
/** A closed segment with more parts than this becomes one object. */
const PARTS_MAX = 8;
/** Frames between two turns of the event loop. */
const FRAMES_A_TURN = 8;

/** Where a generation of a copy ends. */
interface CopyEnd {
  readonly generation: string;
  /** Its first entry; null: it has none. */
  readonly first: number | null;
  readonly last: Mark | null;
}

/** Another machine was promoted, and writes the copy. */
export class TakenOver extends Refused {
  /** That machine, when, in words. */
  readonly by: string;

  constructor({ text }: Place, by: string) {
    super(
      'failed',
      `${text} is left as it is: ${by}. Send clients to that machine; to make this one its standby, run: wirewatch restore ${text} --replace`,
    );
    this.by = by;
  }
}

export class Shipper {
  readonly place: Place;
  readonly #folder: DataFolder;
  /** The end that was read or written last; null: it must be read. */
  #end: CopyEnd | null = null;
  /** The change of access.db that the copy has; null: it must be read. */
  #change: number | null = null;
  readonly #partBytes: number;
  readonly #onWritten: (bytes: number) => void;
  /** Whether objects of the copy are damaged. */
  #isDamaged = false;
  /** The id of the copy. */
  #copy = '';
  /** Bytes that were written. */
  written = 0;

  /**
   * @param onWritten called with the sum of bytes so far
   * @param partBytes the size of a part: a larger entry is written in pieces
   */
  constructor(
    place: Place,
    folder: DataFolder,
    onWritten: (bytes: number) => void = () => {},
    partBytes = PART_BYTES,
  ) {
    this.#partBytes = partBytes;
    this.place = place;
    this.#folder = folder;
    this.#onWritten = onWritten;
  }

  /** The last entry of the copy, as far as it is known. */
  get last(): Mark | null {
    return this.#end?.last ?? null;
  }

  /** Reads all of the copy. @returns what is wrong with it, in words */
  async verify(): Promise<readonly string[]> {
    const written = this.last?.entry ?? 0;
    const { findings, entries } = await verifyCopy(this.place, () => {});
    if (findings.length > 0 || entries >= written) return findings;
    return [`it ends with entry ${entries}, although entry ${written} was written`];
  }

  /**
   * The next {@link ship} writes all of it anew, and deletes the objects so far. Where the copy ends is not read again:
   * its newest object may be what is damaged or lost.
   */
  noteDamage(): void {
    this.#isDamaged = true;
    this.#change = null;
  }

  /**
   * @param access the state of access.db, found before `end` was: a removal that it no longer has open is in the log; null:
   *   it did not change since the last call, which succeeded
   * @param end the last entry to write, which the database has applied; null: there is none, and the copy must have none
   * @throws Unreachable; Refused `failed` if the copy is not an earlier state of this installation; LogDamage if the log of
   *   this machine, or the end of the copy, is damaged
   */
  async ship(access: FoundCopy | null, end: Mark | null): Promise<void> {
    const { access: path } = this.#folder;
    if (access === null && this.#change === null) throw new Error('the state of access.db is not known');
    if (access !== null && access.kind !== 'sound')
      throw failed(`${path} and its spare copy are damaged or missing. To see more: wirewatch verify`);
    try {
      if (access !== null && this.#change === null) {
        ensureRole(this.#folder);
        this.#copy = await requireOwn(this.place, this.#folder, access.state);
      }
      await this.#shipLog(end);
      if (access === null || this.#change === access.state.change) return;
      this.#count(await writeAccess(this.place, access.state, access.content));
      this.#change = access.state.change;
    } catch (error) {
      this.#end = null;
      this.#change = null;
      throw error;
    }
  }

  async #shipLog(to: Mark | null): Promise<void> {
    const { place } = this;
    // Another machine may have taken the next number meanwhile, also where there is nothing to write.
    if (this.#end !== null) {
      const { generation, last } = this.#end;
      if ((await namesFrom(place, generation, (last?.entry ?? 0) + 1)).length > 0) this.#end = null;
    }
    // Where another process writes meanwhile, the end of the copy is read again.
    for (let end: CopyEnd | null = this.#end; ; ) {
      end ??= await this.#findEnd();
      const { first, last } = end;
      const own = listSegments(this.#folder.log)[0]?.firstEntry ?? 1;
      if (to === null) {
        this.#end = end;
        return;
      }
      // The log was compacted.
      if (first !== null && (own > first || this.#isDamaged)) end = await this.#beginGeneration(end, to);
      else if ((last?.entry ?? 0) < to.entry) end = await this.#shipAfter(end, to);
      this.#end = end;
      if (end !== null) return;
    }
  }

  /** @throws Refused `failed` if the copy has entries that the log of this machine lacks */
  async #findEnd(): Promise<CopyEnd> {
    const { generation, changes, objects } = await findLog(this.place);
    if (changes.length > 0) await deleteBefore(this.place, generation, changes);
    const newest = objects.at(-1);
    const last = newest === undefined ? null : ((await commitsIn(this.place, newest.name)).at(-1) ?? null);
    // Where a snapshot has taken the place of that entry, only the note tells whose it is.
    const noted = keptCopies(this.#folder).get(this.#copy)?.ids ?? [];
    const found = last === null ? 'known' : placeOf(this.#folder.log, last);
    if (found !== 'known' && (found !== 'before' || !noted.includes(last?.id ?? ''))) {
      const by = await this.#newestWriter();
      if (by !== null) throw new TakenOver(this.place, by);
      throw left(
        this.place,
        'it is the copy of a later state of this installation, or of one that was discarded by a restore',
      );
    }
    return { generation, first: objects[0]?.first ?? null, last };
  }

  /** The other machine that took over last, and wrote what is not in the log of this one, in words; null: there is none. */
  async #newestWriter(): Promise<string | null> {
    const { machine } = readRole(this.#folder);
    const { objects, begunBy } = await findLog(this.place);
    for (const { name } of objects.toReversed())
      for (const { operation, at, ...mark } of (await commitsIn(this.place, name)).toReversed()) {
        if (placeOf(this.#folder.log, mark) === 'known') return null;
        if (operation.kind !== PROMOTE) continue;
        return operation.machine === machine ? null : `machine ${operation.machine} took over at ${at}`;
      }
    return begunBy === null || begunBy === machine ? null : `machine ${begunBy} took over`;
  }

  /**
   * Writes the entries after the end of a generation, up to one: in parts, and in pieces what is too large for one.
   * @param isDraft whether the generation is not in use yet
   * @returns where it ends then; null: another process wrote meanwhile
   */
  async #shipAfter(begin: CopyEnd, to: Mark, isDraft = false): Promise<CopyEnd | null> {
    const { generation } = begin;
    let end = begin;
    const { log } = this.#folder;
    /** The last whole entry, and where it ends in the frames that are not written yet. */
    let last = begin.last;
    let whole = 0;
    const frames: Buffer[] = [];
    let bytes = 0;
    let pieces: string[] = [];
    let first: number | null = null;
    let within = '';
    const writePiece = async (from: number, count: number) => {
      const name = pieceName(generation, from, randomBytes(8).toString('hex'));
      await this.#create(name, take(count));
      pieces.push(name);
    };
    const take = (count: number): Buffer => {
      const content = Buffer.concat(frames.splice(0, count));
      bytes -= content.length;
      return content;
    };
    const writePart = async (): Promise<boolean> => {
      if (first === null || last === null) return true;
      if (pieces.length > 0) await writePiece(first, whole);
      const content = pieces.length > 0 ? pointerContent({ large: pieces }) : take(whole);
      if (!isDraft) this.#note([end.last, last]);
      if (!(await this.#claim(generation, first, content))) return false;
      end = { generation, first: end.first ?? first, last };
      first = frames.length > 0 ? last.entry + 1 : null;
      pieces = [];
      whole = 0;
      return true;
    };
    for (const { segment, part } of entriesAfter(log, last)) {
      if (segment.path !== within && part.entry === segment.firstEntry) {
        if (!(await writePart())) return null;
        if (last !== null) await this.#mergeBefore(generation, segment, last);
      }
      within = segment.path;
      first ??= part.entry;
      frames.push(part.frame.bytes);
      bytes += part.frame.bytes.length;
      if (part.commit !== null) {
        last = part.commit;
        whole = frames.length;
      }
      const isEnd = (part.commit?.entry ?? 0) >= to.entry;
      const isFull = bytes >= this.#partBytes;
      if (isFull && whole === 0) await writePiece(first, frames.length);
      else if ((isFull || isEnd || pieces.length > 0) && whole > 0 && !(await writePart())) return null;
      if (isEnd) return end;
      if (frames.length % FRAMES_A_TURN === 0) await nextTurn();
    }
    throw new LogDamage(`the log ends before entry ${to.entry}`);
  }

  /** Creates the next part. @returns false if it, or something beyond it, was there already */
  async #claim(generation: string, first: number, content: Buffer): Promise<boolean> {
    const name = partName(generation, first);
    if (!(await this.#create(name, content))) return false;
    const beyond = await namesFrom(this.place, generation, first);
    return beyond.every((other) => other === name);
  }

  async #create(name: string, content: Buffer): Promise<boolean> {
    const isCreated = await this.place.create(name, content);
    if (isCreated) this.#count(content.length);
    return isCreated;
  }

  /** Makes one object of the parts of the closed segment before one; then the parts go. @param last its last entry */
  async #mergeBefore(generation: string, { firstEntry }: Segment, last: Mark): Promise<void> {
    const segment = listSegments(this.#folder.log).findLast((other) => other.firstEntry < firstEntry);
    if (segment === undefined) return;
    const first = segment.firstEntry;
    const names = await namesFrom(this.place, generation, first);
    const parts = names
      .flatMap((name) => parseLogName(name) ?? [])
      .filter((object) => object.last === null && object.first <= last.entry);
    const newest = parts.at(-1);
    if (newest === undefined || parts.length <= PARTS_MAX || parts[0]?.first !== first) return;
    // Entries in pieces stay so: as one object they could be larger than memory.
    if ((await piecesOf(this.place, generation, first, firstEntry)).length > 0) return;
    // Where an earlier log had other segments, a part may reach beyond this one.
    if ((await commitsIn(this.place, newest.name)).at(-1)?.id !== last.id) return;
    await this.#create(mergedName(generation, first, last.entry), await contentOf(segment, last));
    for (const { name } of parts) await this.place.delete(name);
  }

  /** Writes the compacted log beside the old objects, and then the part that leads to it. @returns null: the end must be read */
  async #beginGeneration(old: CopyEnd, to: Mark): Promise<null> {
    const generation = await newGeneration(this.place);
    const made = await this.#shipAfter({ generation, first: null, last: null }, to, true);
    if (made === null) return null;
    this.#note([old.last, made.last]);
    const content = pointerContent({ generation, machine: readRole(this.#folder).machine });
    if (await this.#claim(old.generation, (old.last?.entry ?? 0) + 1, content)) this.#isDamaged = false;
    return null;
  }

  #note(marks: readonly (Mark | null)[]): void {
    noteKept(this.#folder, { copy: this.#copy, to: this.place.text }, marks);
  }

  #count(bytes: number): void {
    this.written += bytes;
    this.#onWritten(this.written);
  }
}

/** The entries of a closed segment up to its last one, as one content. @throws LogDamage, LogFailure */
async function contentOf(segment: Segment, last: Mark): Promise<Buffer> {
  using reader = new SegmentReader(segment);
  const frames: Buffer[] = [];
  for (let part = reader.next(); part !== null; part = reader.next()) {
    frames.push(part.frame.bytes);
    await nextTurn();
  }
  if (reader.last?.id !== last.id) throw new LogDamage(`${segment.path} is damaged at byte ${reader.end}`);
  return Buffer.concat(frames);
}
