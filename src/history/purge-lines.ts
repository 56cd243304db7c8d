/**
 * Which lines of the log are of subscriptions that were removed, and what is said in their place: pure.
 *
 * What is made of the lines that stay must be equal, column by column, so those that count are counted again, and the
 * `put` of a stream that ended stands at the first line of it that goes: there its ordinal was given. All else is said
 * outright. A `put` also says to which rows it refers: to those of its stream in the entries before.
 */
import { type StreamName, streamName } from '../detection/content-type.ts';
import { streamOfId } from '../detection/id.ts';
import { isObject, parse } from './format.ts';
import { LogDamage } from './log-error.ts';
import { createdLine, passedLine, readRowLine } from './row-lines.ts';

interface End {
  readonly entry: number;
  readonly line: string;
}

const ENDED = '{"put":"stream"';
/** Lines of one detection, by how they begin. */
const OF_DETECTION = /^\{"(row|changed|rescored)":"([^"]+)"/;

/** Where streams ended, as the log tells: its newest segment is read first. */
export class EndedStreams {
  readonly #ends = new Map<StreamName, End[]>();

  /** Takes in a line of an entry, if it says that a stream ended. */
  note(line: string, entry: number): void {
    if (!line.startsWith(ENDED)) return;
    const value = parse(line);
    const row = isObject(value) && isObject(value.row) ? value.row : {};
    const { subscription_id, content_type } = row;
    if (typeof subscription_id !== 'number' || (content_type !== 'text' && content_type !== 'image'))
      throw new LogDamage('a line does not name a stream');
    const stream = streamName(subscription_id, content_type);
    const ends = this.#ends.get(stream) ?? [];
    ends.push({ entry, line });
    this.#ends.set(stream, ends);
  }

  /** The line that stands for rows which an entry has of a stream: of its first end behind it. Null: they stay. */
  endBehind(stream: StreamName, entry: number): string | null {
    const behind = (this.#ends.get(stream) ?? []).filter((end) => end.entry > entry);
    if (behind.length === 0) return null;
    return behind.reduce((first, end) => (end.entry < first.entry ? end : first)).line;
  }
}

/** The stream of the detection that a line is about; null for other lines. */
export function streamOfLine(line: string): StreamName | null {
  const id = OF_DETECTION.exec(line)?.[2];
  return id === undefined ? null : streamOfId(id);
}

/** What stays of the lines of a segment, from its first one on. */
export class LinePurge {
  readonly #ends: EndedStreams;
  /** Of each row of an export of which it was not said yet what became of it: what stands for it where it goes. */
  #waiting: (string | null)[] = [];
  readonly #said = new Set<string>();
  #kept: string[] = [];
  #isChanged = false;

  constructor(ends: EndedStreams) {
    this.#ends = ends;
  }

  /** @returns null where all of them stay; @throws LogDamage where they contradict themselves */
  purge(lines: readonly string[], entry: number): string[] | null {
    this.#kept = [];
    this.#isChanged = false;
    for (const line of lines) {
      const [, kind, id = ''] = OF_DETECTION.exec(line) ?? [];
      if (kind !== undefined) this.#ofDetection(line, kind, this.#ends.endBehind(streamOfId(id), entry));
      else if (/^\{"(created|passed)":/.test(line)) this.#outcome(line);
      else this.#kept.push(line);
    }
    return this.#isChanged ? this.#kept : null;
  }

  #ofDetection(line: string, kind: string, end: string | null): void {
    if (kind === 'row') this.#waiting.push(end);
    if (end === null) this.#kept.push(line);
    else if (kind === 'row') this.#isChanged = true;
    else this.#say(end);
  }

  /** Of a run of rows: those that go are left out of it. */
  #outcome(line: string): void {
    const outcome = readRowLine(line);
    if (outcome.kind !== 'created' && outcome.kind !== 'passed') return;
    if (outcome.rows > this.#waiting.length) throw new LogDamage('a line refers to rows that do not exist');
    const taken = this.#waiting.splice(0, outcome.rows);
    if (taken.every((end) => end === null)) {
      this.#kept.push(line);
      return;
    }
    let staying = 0;
    for (const [at, end] of [...taken, ''].entries()) {
      if (end === null) staying += 1;
      else {
        if (staying > 0)
          this.#add(
            outcome.kind === 'passed'
              ? passedLine(staying)
              : createdLine(staying, outcome.position + at - staying, outcome.version),
          );
        staying = 0;
        if (end !== '') this.#say(end);
      }
    }
  }

  /** Once in a segment. */
  #say(end: string): void {
    this.#isChanged = true;
    if (!this.#said.has(end)) this.#kept.push(end);
    this.#said.add(end);
  }

  #add(line: string): void {
    this.#kept.push(line.slice(0, -1));
  }
}
