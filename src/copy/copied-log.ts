/**
 * Reads the log in a copy: which objects have it now, and their content.
 *
 * Compaction begins a new generation of objects. The change to it is the next entry's part of the old one, so there is one
 * order of all that was written; it stays when the other objects of the old generation go.
 */
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { type Commit, parse, parseCommit } from '../log/format.ts';
import { decodeLines, encodeFrame } from '../log/frame.ts';
import { failed } from '../refused.ts';
import { LogDamage } from '../store/log-errors.ts';
import { EntryChain, framesOf, type RawFrame } from './entries.ts';
import { FIRST_GENERATION, GENERATION, generationFolder, inOrder, LOG, type LogObject } from './names.ts';
import type { Place } from './place.ts';

/** How often objects may go while they are looked for. */
const TRIES_MAX = 5;

/** What stands in a part in place of entries: an entry in pieces, or the next generation. */
const Pointer = Type.Union([
  Type.Object({ large: Type.Array(Type.String()) }),
  Type.Object({
    generation: Type.String({ pattern: GENERATION }),
    /** Who wrote it: a snapshot has no entry of a promotion before it. */
    machine: Type.String(),
  }),
]);

export function largeContent(pieces: readonly string[]): Buffer {
  return encodeFrame('header', `${JSON.stringify({ large: pieces })}\n`);
}

export function generationContent(generation: string, machine: string): Buffer {
  return encodeFrame('header', `${JSON.stringify({ generation, machine })}\n`);
}

export interface CopiedLog {
  /** The newest generation that is in use. */
  readonly generation: string;
  /** The part of each earlier generation that leads to the next. */
  readonly changes: readonly string[];
  /** Of that generation, in order; without entries: none. */
  readonly objects: readonly LogObject[];
}

/** @throws Unreachable, LogDamage */
export async function findLog(place: Place): Promise<CopiedLog> {
  const changes: string[] = [];
  for (let generation = FIRST_GENERATION, tries = 1; ; ) {
    const objects = inOrder(await place.list(generationFolder(LOG, generation), ''));
    const last = objects.at(-1);
    if (last === undefined || last.last !== null) return { generation, changes, objects };
    const content = await place.read(last.name);
    // Between the two calls the writer may have deleted it, since another generation is in use.
    if (content === null && tries < TRIES_MAX) {
      tries += 1;
      continue;
    }
    const next = await generationOf(last.name, content ?? missing(last.name));
    if (next === null) return { generation, changes, objects };
    changes.push(last.name);
    generation = next.generation;
  }
}

/** @returns the generation that a part leads to; null: it has entries */
export async function generationIn(place: Place, name: string): Promise<Generation | null> {
  return generationOf(name, await contentOf(place, name));
}

async function generationOf(name: string, content: Buffer): Promise<Generation | null> {
  const pointer = await pointerIn(name, content);
  return pointer !== null && 'generation' in pointer ? pointer : null;
}

export interface Generation {
  readonly generation: string;
  /** The id of the machine that began it. */
  readonly machine: string;
}

/** The frames of an object with entries, also of an entry in pieces. @throws Unreachable, LogDamage */
export async function* framesIn(place: Place, name: string): AsyncGenerator<RawFrame> {
  const content = await contentOf(place, name);
  const pointer = await pointerIn(name, content);
  if (pointer === null) yield* framesOf([content], name);
  else if ('large' in pointer) yield* framesOf(piecesOf(place, pointer.large), name);
}

/**
 * All frames of a log, checked, with the commit line of the entry that a frame ends.
 * @param onObject called before each object
 * @param chain what comes before the first object; left out: nothing
 * @throws Unreachable, LogDamage
 */
export async function* entriesIn(
  place: Place,
  objects: readonly LogObject[],
  onObject: (done: number) => void = () => {},
  chain = new EntryChain(null),
): AsyncGenerator<{ readonly frame: RawFrame; readonly commit: Commit | null }> {
  for (const [done, { name, first }] of objects.entries()) {
    onObject(done);
    if ((chain.last?.entry ?? first - 1) !== first - 1)
      throw new LogDamage(`the entries before ${name} are missing`);
    for await (const frame of framesIn(place, name)) yield { frame, commit: chain.add(frame) };
  }
}

/** The commit lines of an object, in order. @throws Unreachable, LogDamage */
export async function commitsIn(place: Place, name: string): Promise<Commit[]> {
  const commits: Commit[] = [];
  for await (const { kind, packed } of framesIn(place, name))
    if (kind === 'commit') commits.push(parseCommit(decodeLines(packed).at(-1) ?? ''));
  return commits;
}

/** The last entry of an object. @throws Unreachable; LogDamage if it has none, or is damaged */
export async function lastIn(place: Place, name: string): Promise<Commit> {
  const last = (await commitsIn(place, name)).at(-1);
  if (last === undefined) throw new LogDamage(`${name} has no whole entry`);
  return last;
}

async function* piecesOf(place: Place, names: readonly string[]): AsyncGenerator<Buffer> {
  for (const name of names) yield await contentOf(place, name);
}

/** @throws LogDamage if it is missing */
async function contentOf(place: Place, name: string): Promise<Buffer> {
  return (await place.read(name)) ?? missing(name);
}

function missing(name: string): never {
  throw new LogDamage(`${name} is missing`);
}

async function pointerIn(name: string, content: Buffer) {
  for await (const { kind, packed } of framesOf([content], name)) {
    if (kind !== 'header') return null;
    const value = parse(decodeLines(packed)[0] ?? '');
    if (Value.Check(Pointer, value)) return value;
    throw failed(`its ${name} is from a newer version of Wirewatch. Use that version`);
  }
  throw new LogDamage(`${name} is empty`);
}
