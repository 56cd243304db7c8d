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
import type { Place } from './place.ts';

const LOG_NAME = /^log\/(\d{4}(?:-[0-9a-f]{8})?)\/(\d{16})(?:-(\d{16}))?\.zst$/;
/** The generation that a copy begins with. */
export const FIRST_GENERATION = '0001';
const FOLDERS = ['log/', 'large/'] as const;
/** How often objects may go while they are looked for. */
const TRIES_MAX = 5;

/** An object with entries of the log. */
export interface LogObject {
  readonly name: string;
  readonly generation: string;
  /** Its first entry. */
  readonly first: number;
  /** Its last entry; null: it is a part, and only its content says. */
  readonly last: number | null;
}

const logFolder = (generation: string) => `log/${generation}/`;

/** A new name, beyond all that are there. @throws Unreachable */
export async function newGeneration(place: Place): Promise<string> {
  const names = await place.list('log/', '');
  const numbers = names.map((name) => generationNumber(parseLogName(name)?.generation ?? FIRST_GENERATION));
  return `${String(Math.max(...numbers) + 1).padStart(4, '0')}-${randomBytes(4).toString('hex')}`;
}

/** Deletes what an older generation has but its change to the next, and drafts of generations that did not come. */
export async function deleteBefore(
  place: Place,
  generation: string,
  changes: readonly string[],
): Promise<void> {
  for (const folder of FOLDERS)
    for (const name of await place.list(folder, '')) {
      const [, own = ''] = name.split('/');
      const isBefore = own !== generation && generationNumber(own) <= generationNumber(generation);
      if (isBefore && !changes.includes(name)) await place.delete(name);
    }
}

function generationNumber(generation: string): number {
  return Number.parseInt(generation, 10);
}

export function partName(generation: string, first: number): string {
  return `${beforeEntry(generation, first)}.zst`;
}

export function mergedName(generation: string, first: number, last: number): string {
  return `${beforeEntry(generation, last)}-${padded(first)}.zst`;
}

/** @param random '' for what the names of all pieces come after that have the entry or a later one */
export function pieceName(generation: string, first: number, random = ''): string {
  return `large/${generation}/${padded(first)}${random && `-${random}.zst`}`;
}

/** What all names come after that have an entry or a later one. */
function beforeEntry(generation: string, entry: number): string {
  return logFolder(generation) + padded(entry);
}

/** The names of the objects of a generation that have an entry, or a later one. @throws Unreachable */
export function namesFrom(place: Place, generation: string, entry: number): Promise<string[]> {
  return place.list(logFolder(generation), beforeEntry(generation, entry));
}

/** The names of the pieces of entries from one up to another, which is not among them. @throws Unreachable */
export async function piecesOf(
  place: Place,
  generation: string,
  first: number,
  end: number,
): Promise<string[]> {
  const names = await place.list(`large/${generation}/`, pieceName(generation, first));
  return names.filter((name) => name < pieceName(generation, end));
}

/** @returns null for a name of another kind */
export function parseLogName(name: string): LogObject | null {
  const [, generation, number, first] = LOG_NAME.exec(name) ?? [];
  if (generation === undefined || number === undefined) return null;
  return {
    name,
    generation,
    first: Number(first ?? number),
    last: first === undefined ? null : Number(number),
  };
}

/**
 * The objects that have the entries of a generation, each entry once, in order: parts that a merged object covers are left
 * out, which its writer may not have deleted yet.
 */
function inOrder(names: readonly string[]): LogObject[] {
  const all = names.flatMap((name) => parseLogName(name) ?? []);
  const merged = all.filter(({ last }) => last !== null);
  const isCovered = ({ first }: LogObject) =>
    merged.some((object) => object.first <= first && first <= (object.last ?? 0));
  return all.filter((object) => object.last !== null || !isCovered(object)).sort((a, b) => a.first - b.first);
}

function padded(number: number): string {
  return String(number).padStart(16, '0');
}

/** What stands in a part in place of entries: an entry in pieces, or the next generation. */
const Pointer = Type.Union([
  Type.Object({ large: Type.Array(Type.String()) }),
  Type.Object({
    generation: Type.String({ pattern: '^[0-9]{4}-[0-9a-f]{8}$' }),
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
    const objects = inOrder(await place.list(logFolder(generation), ''));
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
