/**
 * What a copy holds, and its log: which objects have it now, and their content.
 *
 * | name | content |
 * |---|---|
 * | `installation.json`, `secret` | whose copy it is (own-copy.ts) |
 * | `access/CHANGE.db.zst` | `access.db` after its change of that number (own-copy.ts) |
 * | `log/GENERATION/FIRST.zst` | a part: whole entries of the log, from the entry FIRST on; its name is the claim to that number |
 * | `log/GENERATION/LAST-FIRST.zst` | all of the parts from FIRST to LAST in one: by then they may be deleted |
 * | `large/GENERATION/FIRST-RANDOM.zst` | a piece of the entries from FIRST on, which are too large for one part |
 *
 * Compaction begins a new generation. The change to it is the next entry's part of the old one, so there is one order of all
 * that was written; it stays when the other objects of the old generation go. A generation is a number, and for later ones
 * than the first the random id of whoever wrote it: two machines that begin one at once do not mix. Numbers have a fixed
 * width, so that names are in the order of their entries, and an object that covers an entry has a name beyond that of the
 * entry.
 */
import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { Commit, Mark } from '../log/format.ts';
import { commitIn, encodeFrame, entryChain, type Frame, frameAt, framesOf, headerIn } from '../log/frame.ts';
import { failed, type Refused } from '../refused.ts';
import { LogDamage } from '../store/log-errors.ts';
import type { Place } from './place.ts';

const LOG_NAME = /^log\/[^/]+\/(\d{16})(?:-(\d{16}))?\.zst$/;
/** The generation that a copy begins with. */
export const FIRST_GENERATION = '0001';
/** How often objects may go while they are looked for. */
const TRIES_MAX = 5;
/** Frames between two turns of the event loop. */
export const FRAMES_A_TURN = 8;

/** `first`, `last`: its first and its last entry; `last` is null for a part: only its content says. */
export type LogObject = Readonly<{ name: string; first: number; last: number | null }>;

const numberOf = (generation: string) => Number.parseInt(generation, 10);

export const generationAfter = (generation: string) =>
  `${String(numberOf(generation) + 1).padStart(4, '0')}-${randomBytes(4).toString('hex')}`;

async function deleteBelow(place: Place, prefixes: readonly string[], isGone: (name: string) => boolean) {
  for (const prefix of prefixes)
    for (const name of await place.list(prefix, '')) if (isGone(name)) await place.delete(name);
}

/** Deletes what an older generation has but its change to the next, and drafts of generations that did not come. */
export const deleteBefore = ({ place, generation, changes }: CopiedLog) =>
  deleteBelow(place, ['log/', 'large/'], (name) => {
    const [, other = ''] = name.split('/');
    return other !== generation && numberOf(other) <= numberOf(generation) && !changes.includes(name);
  });

/** Deletes what nothing leads to, if the place allows it now: it takes up the room that the next attempt needs. */
export const discard = (place: Place, prefixes: readonly string[], kept: readonly string[] = []) =>
  deleteBelow(place, prefixes, (name) => !kept.includes(name)).catch(() => {});

const padded = (number: number) => String(number).padStart(16, '0');

export const partName = (generation: string, first: number) => `log/${generation}/${padded(first)}.zst`;

export const mergedName = (generation: string, first: number, last: number) =>
  `log/${generation}/${padded(last)}-${padded(first)}.zst`;

/** How the names of pieces begin. @param first the first entry that they have, or a part of */
export const pieceNames = (generation: string, first: number) => `large/${generation}/${padded(first)}-`;

/** The objects of a generation that have an entry, or a later one, by their names. @throws Unreachable */
export async function objectsFrom(place: Place, generation: string, entry: number): Promise<LogObject[]> {
  const names = await place.list(`log/${generation}/`, `log/${generation}/${padded(entry)}`);
  return names.flatMap((name) => {
    const [, number = '', first] = LOG_NAME.exec(name) ?? [];
    if (number === '') return [];
    const last = first === undefined ? null : Number(number);
    return [{ name, first: Number(first ?? number), last }];
  });
}

/** Each entry once, in order: without parts that a merged object covers, which its writer may not have deleted yet. */
function inOrder(all: readonly LogObject[]): LogObject[] {
  const merged = all.filter(({ last }) => last !== null);
  const isCovered = ({ first }: LogObject) =>
    merged.some((object) => object.first <= first && first <= (object.last ?? 0));
  return all.filter((object) => object.last !== null || !isCovered(object)).sort((a, b) => a.first - b.first);
}

/** What stands in a part in place of entries: entries in pieces, or the next generation. */
const Pointer = Type.Union([
  Type.Object({ large: Type.Array(Type.String({ pattern: '^large/[0-9a-f/-]+\\.zst$' })) }),
  Type.Object({
    generation: Type.String({ pattern: '^[0-9]{4}-[0-9a-f]{8}$' }),
    /** The id of the machine that began it: a snapshot has no entry of a promotion before it. */
    machine: Type.String(),
  }),
]);

export const pointerContent = (pointer: Static<typeof Pointer>) =>
  encodeFrame('header', `${JSON.stringify(pointer)}\n`);

export type OnProgress = (what: string, done: number, total: number) => void;

/** The log in a copy, as one look found it. */
export type CopiedLog = Readonly<Awaited<ReturnType<typeof findLog>>>;

/**
 * Where the last part is damaged, whoever reads it finds out.
 * @param from a generation that is, or was, in use
 * @returns `generation`: the newest one in use; `begunBy`: the id of the machine that began it, null: it is the first that was
 *   looked at; `changes`: the part of each earlier one that leads to the next; `objects`: those of the newest, in order
 * @throws Unreachable; LogDamage if objects go again and again while they are looked for
 */
export async function findLog(place: Place, from = FIRST_GENERATION) {
  const changes: string[] = [];
  let begunBy: string | null = null;
  for (let generation = from, tries = 1; ; ) {
    const objects = inOrder(await objectsFrom(place, generation, 0));
    const { name, last } = objects.at(-1) ?? { name: '', last: 0 };
    const content = last === null ? await place.read(name) : undefined;
    if (content === null) {
      // Between the two calls the writer deleted it, since another one is in use.
      if (tries === TRIES_MAX) throw new LogDamage(`${name} is missing`);
      tries += 1;
      continue;
    }
    const pointer = content === undefined ? null : pointerIn(name, content);
    if (pointer === null || 'large' in pointer) return { place, generation, begunBy, changes, objects };
    changes.push(name);
    ({ generation, machine: begunBy } = pointer);
  }
}

/**
 * The frames of an object with entries, also of entries in pieces. It may have a whole segment, and the main thread reads it
 * while it answers requests. @throws Unreachable, LogDamage
 */
async function* framesIn(place: Place, name: string): AsyncGenerator<Frame> {
  const content = await place.read(name);
  if (content === null) throw new LogDamage(`${name} is missing`);
  const pointer = pointerIn(name, content);
  if (pointer !== null) {
    for (const piece of 'large' in pointer ? pointer.large : []) yield* framesIn(place, piece);
    return;
  }
  let count = 0;
  for (const frame of framesOf(content, name)) {
    yield frame;
    count += 1;
    if (count % FRAMES_A_TURN === 0) await nextTurn();
  }
}

/**
 * The parts of the entries after one in a log, in order, checked.
 * @param before null: from the first one on, which a log must be able to begin with
 * @param onProgress called before each object
 * @throws Unreachable; LogDamage; Refused `failed` if the copy has another entry with the number of that one
 */
export async function* entriesIn(copied: CopiedLog, before: Mark | null, onProgress?: OnProgress) {
  const { place, objects } = copied;
  const from = before?.entry ?? 0;
  // The next entry may be within an object that begins before it.
  const within = objects.findLastIndex(({ first }) => first <= from + 1);
  const begin = Math.max(0, within);
  const chain = entryChain(before === null ? null : undefined, objects[begin]?.first ?? 1);
  for (const [index, { name, first }] of objects.entries().drop(begin)) {
    onProgress?.('reading the copy', index, objects.length);
    if (chain.next !== first) throw new LogDamage(`the entries before ${name} are missing`);
    let isWhole = false;
    for await (const frame of framesIn(place, name)) {
      const part = chain.add(frame);
      isWhole = part.commit !== null;
      const { entry = 0, id = '', after = null } = part.commit ?? {};
      const isOther = entry === from ? id !== before?.id : entry === from + 1 && after !== before?.id;
      if (before !== null && isOther) throw lacksOwn(place);
      if (part.entry > from) yield part;
    }
    if (!isWhole) throw new LogDamage(`${name} does not end with a whole entry`);
  }
}

/** That the copy has another history than this machine. */
export const lacksOwn = ({ text }: Place): Refused =>
  failed(
    `${text} lacks what this machine has: another machine was the writer meanwhile. Make this one a standby of it: stop Wirewatch, and run wirewatch restore ${text} --replace`,
  );

/** The commit lines of an object, in order. @throws Unreachable; LogDamage if there is none, or it is damaged */
export async function commitsIn(place: Place, name: string): Promise<Commit[]> {
  const commits: Commit[] = [];
  for await (const frame of framesIn(place, name)) if (frame.kind === 'commit') commits.push(commitIn(frame));
  if (commits.length === 0) throw new LogDamage(`${name} has no whole entry`);
  return commits;
}

/** @returns null if it has entries, or cannot be read */
function pointerIn(name: string, content: Buffer): Static<typeof Pointer> | null {
  const frame = frameAt((offset, length) => content.subarray(offset, offset + length), 0);
  if (frame?.kind !== 'header') return null;
  const value = headerIn(frame);
  if (Value.Check(Pointer, value)) return value;
  throw failed(`its ${name} is from a newer version of Wirewatch. Use that version`);
}
