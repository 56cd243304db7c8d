/**
 * Which lines of the log belong to removed subscriptions, and what replaces them: pure.
 *
 * The remaining lines must produce the same rows. So lines that count rows are counted again, and the first line of a
 * removed stream, which gave it its ordinal, is replaced by the `put` of its end. That `put` refers to the rows of its
 * stream in earlier entries.
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
/** The beginning of a line about one detection. */
const OF_DETECTION = /^\{"(row|changed|rescored)":"([^"]+)"/;

/** Where streams ended. The newest segment is read first. */
export class EndedStreams {
  readonly #ends = new Map<StreamName, End[]>();

  /** Notes a line of an entry if it is the end of a stream. */
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

  /** The line that replaces the rows of a stream in an entry: the first end after it. Null: they stay. */
  endAfter(stream: StreamName, entry: number): string | null {
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

/** Purges the lines of one segment, in order. */
export class LinePurge {
  readonly #ends: EndedStreams;
  /** For each row whose outcome is still to come: the line that replaces it, or null if it stays. */
  #waiting: (string | null)[] = [];
  readonly #said = new Set<string>();
  #kept: string[] = [];
  #isChanged = false;

  constructor(ends: EndedStreams) {
    this.#ends = ends;
  }

  /** @returns null if all lines stay; @throws LogDamage if they contradict each other */
  purge(lines: readonly string[], entry: number): string[] | null {
    this.#kept = [];
    this.#isChanged = false;
    for (const line of lines) {
      const [, kind, id = ''] = OF_DETECTION.exec(line) ?? [];
      if (kind !== undefined) this.#ofDetection(line, kind, this.#ends.endAfter(streamOfId(id), entry));
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

  /** Splits a run of rows at those that are removed. */
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

  /** Adds the line once in a segment. */
  #say(end: string): void {
    this.#isChanged = true;
    if (!this.#said.has(end)) this.#kept.push(end);
    this.#said.add(end);
  }

  #add(line: string): void {
    this.#kept.push(line.slice(0, -1));
  }
}
