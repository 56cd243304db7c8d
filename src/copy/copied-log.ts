/**
 * Reads the log in a copy: which objects have it now, and their content.
 *
 * Compaction begins a new generation of objects. The change to it is the next entry's part of the old one, so there is one
 * order of all that was written; it stays when the other objects of the old generation go.
 */
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { type Commit, type Mark, parse } from '../log/format.ts';
import {
  commitIn,
  decodeLines,
  EntryChain,
  type EntryPart,
  encodeFrame,
  type Frame,
  framesOf,
} from '../log/frame.ts';
import { failed } from '../refused.ts';
import { LogDamage } from '../store/log-errors.ts';
import { FIRST_GENERATION, GENERATION, generationFolder, inOrder, LOG, type LogObject } from './names.ts';
import type { Place } from './place.ts';

/** How often objects may go while they are looked for. */
const TRIES_MAX = 5;

/** What stands in a part in place of entries: an entry in pieces, or the next generation. */
const Pointer = Type.Union([
  Type.Object({ large: Type.Array(Type.String()) }),
  Type.Object({
    generation: Type.String({ pattern: GENERATION }),
    /** The id of the machine that began it: a snapshot has no entry of a promotion before it. */
    machine: Type.String(),
  }),
]);

export function pointerContent(pointer: Static<typeof Pointer>): Buffer {
  return encodeFrame('header', `${JSON.stringify(pointer)}\n`);
}

export type OnProgress = (what: string, done: number, total: number) => void;

export interface CopiedLog {
  /** The newest generation that is in use. */
  readonly generation: string;
  /** The id of the machine that began it; null: it is the first that was looked at. */
  readonly begunBy: string | null;
  /** The part of each earlier generation that leads to the next. */
  readonly changes: readonly string[];
  /** The objects of that generation, in order; without entries: none. */
  readonly objects: readonly LogObject[];
}

/** @param from a generation that is, or was, in use. @throws Unreachable, LogDamage */
export async function findLog(place: Place, from = FIRST_GENERATION): Promise<CopiedLog> {
  const changes: string[] = [];
  let begunBy: string | null = null;
  for (let generation = from, tries = 1; ; ) {
    const objects = inOrder(await place.list(generationFolder(LOG, generation), ''));
    const last = objects.at(-1);
    const content = last === undefined || last.last !== null ? undefined : await place.read(last.name);
    // Between the two calls the writer may have deleted it, since another generation is in use.
    if (content === null && tries < TRIES_MAX) {
      tries += 1;
      continue;
    }
    const name = last?.name ?? '';
    const pointer = content === undefined ? null : pointerIn(name, content ?? missing(name));
    if (pointer === null || 'large' in pointer) return { generation, begunBy, changes, objects };
    changes.push(name);
    ({ generation, machine: begunBy } = pointer);
  }
}

/** The frames of an object with entries, also of an entry in pieces. @throws Unreachable, LogDamage */
async function* framesIn(place: Place, name: string): AsyncGenerator<Frame> {
  const content = await contentOf(place, name);
  const pointer = pointerIn(name, content);
  if (pointer === null) yield* framesOf(content, name);
  else if ('large' in pointer)
    for (const piece of pointer.large) yield* framesOf(await contentOf(place, piece), piece);
}

/**
 * All parts of the entries in some objects of a log, checked.
 * @param last the entry before them; null: there is none; undefined: not known
 * @param onProgress called before each object
 * @throws Unreachable, LogDamage
 */
export async function* entriesIn(
  place: Place,
  objects: readonly LogObject[],
  last: Mark | null | undefined,
  onProgress: OnProgress = () => {},
): AsyncGenerator<EntryPart> {
  const chain = new EntryChain(last, objects[0]?.first ?? 1);
  for (const [done, { name, first }] of objects.entries()) {
    onProgress('reading the copy', done, objects.length);
    if (chain.next !== first) throw new LogDamage(`the entries before ${name} are missing`);
    for await (const frame of framesIn(place, name)) yield chain.add(frame);
  }
}

/** The commit lines of an object, in order. @throws Unreachable; LogDamage if there is none, or it is damaged */
export async function commitsIn(place: Place, name: string): Promise<Commit[]> {
  const commits: Commit[] = [];
  for await (const frame of framesIn(place, name)) if (frame.kind === 'commit') commits.push(commitIn(frame));
  if (commits.length === 0) throw new LogDamage(`${name} has no whole entry`);
  return commits;
}

/** @throws LogDamage if it is missing */
async function contentOf(place: Place, name: string): Promise<Buffer> {
  return (await place.read(name)) ?? missing(name);
}

function missing(name: string): never {
  throw new LogDamage(`${name} is missing`);
}

function pointerIn(name: string, content: Buffer) {
  const frame = framesOf(content, name).next().value;
  if (frame === undefined) throw new LogDamage(`${name} is empty`);
  if (frame.kind !== 'header') return null;
  const value = parse(decodeLines(frame)[0] ?? '');
  if (Value.Check(Pointer, value)) return value;
  throw failed(`its ${name} is from a newer version of Wirewatch. Use that version`);
}
