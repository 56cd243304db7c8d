/**
 * Times as other systems write them, by letters: `DD.MM.YYYY HH:mm:ss` (manual, your-exports.md, "Times"). In the name of a
 * file the letters are in braces: `hits_{YYYYMMDD}_{HHmm}.csv`. Pure.
 */
import { parseInstant } from '../time.ts';

const FIELDS = {
  YYYY: { field: 'year', form: '\\d{4}' },
  YY: { field: 'year', form: '\\d{2}' },
  MM: { field: 'month', form: '\\d{2}' },
  M: { field: 'month', form: '\\d{1,2}' },
  DD: { field: 'day', form: '\\d{2}' },
  D: { field: 'day', form: '\\d{1,2}' },
  HH: { field: 'hour', form: '\\d{2}' },
  H: { field: 'hour', form: '\\d{1,2}' },
  hh: { field: 'hour', form: '\\d{2}' },
  h: { field: 'hour', form: '\\d{1,2}' },
  mm: { field: 'minute', form: '\\d{2}' },
  ss: { field: 'second', form: '\\d{2}' },
  S: { field: 'fraction', form: '\\d{1,9}' },
  A: { field: 'half', form: '[AaPp][Mm]' },
  Z: { field: 'offset', form: '[Zz]|[+-]\\d{2}(?::?\\d{2})?' },
} as const;

type Field = (typeof FIELDS)[keyof typeof FIELDS]['field'];

/** Letters that mean something; text in brackets means itself. */
const LETTERS = /(\[[^\]]*\]|YYYY|YY|MM?|DD?|HH?|hh?|mm|ss|S+|A|Z)/;

/** @returns null if the same part of a time is in it twice, or an hour up to 12 without AM or PM */
export const timeFormat = (letters: string) => compiled(splitLetters(letters));

/** The format of a file name, with its letters in braces. */
export function nameFormat(name: string) {
  const texts = name.split(/\{([^{}]*)\}/);
  const parts = texts.flatMap((text, at) => (at % 2 === 0 ? [{ letters: null, text }] : splitLetters(text)));
  return compiled(parts);
}

const SAMPLES: Partial<Record<string, string>> = { YYYY: '2010', A: 'AM', Z: 'Z' };

/** A name of the format of a file name. */
export function sampleName(name: string): string {
  const written = ({ letters, text }: Part) => (letters === null ? text : (SAMPLES[letters] ?? '10'));
  return name.replace(/\{([^{}]*)\}/g, (_, format) => splitLetters(format).map(written).join(''));
}

type Part = Readonly<{ letters: keyof typeof FIELDS | null; text: string }>;

function splitLetters(format: string): Part[] {
  return format.split(LETTERS).map((text, at) => {
    if (at % 2 === 0) return { letters: null, text };
    if (text.startsWith('[')) return { letters: null, text: text.slice(1, -1) };
    return { letters: (text.startsWith('S') ? 'S' : text) as keyof typeof FIELDS, text };
  });
}

function compiled(parts: readonly Part[]) {
  const named = parts.flatMap(({ letters }) => (letters === null ? [] : FIELDS[letters].field));
  const fields = new Set<Field>(named);
  const isOf12 = parts.some(({ letters }) => letters === 'hh' || letters === 'h');
  if (fields.size < named.length || isOf12 !== fields.has('half')) return null;
  const source = parts.map(({ letters, text }) =>
    letters === null ? literal(text) : `(?<${FIELDS[letters].field}>${FIELDS[letters].form})`,
  );
  const pattern = new RegExp(`^${source.join('')}$`, 's');
  return {
    /** What the format gives. */
    fields,
    /**
     * @returns `ms`: epoch milliseconds; of a local time that has no offset (`isLocal`), as if it were in UTC. Null: the
     *   text is not in this format, or there is no such day or time
     */
    parse(text: string) {
      const match = pattern.exec(text);
      if (match === null) return null;
      const { half, offset = 'Z', ...given } = match.groups ?? {};
      const [year = '', month, day, hour = '', minute, second] = CLOCK_FIELDS.map((field) =>
        (given[field] ?? '').padStart(2, '0'),
      );
      const date = `${year.length === 2 ? '20' : ''}${year}-${month}-${day}`;
      const time = `${half === undefined ? hour : of24(hour, half)}:${minute}:${second}`;
      const ms = parseInstant(`${date}T${time}${withMinutes(offset)}`);
      return ms === null ? null : { ms, isLocal: !fields.has('offset') };
    },
  };
}

const CLOCK_FIELDS: readonly Field[] = ['year', 'month', 'day', 'hour', 'minute', 'second'];

/** `+01`, `+0100` or `+01:00` as the last of them. */
const withMinutes = (offset: string): string =>
  offset.replace(/^(.\d\d):?(\d\d)?$/, (_, hours, minutes = '00') => `${hours}:${minutes}`);

/** The hour of 24; no hour if it is not one of 12. */
function of24(hour: string, half: string): string {
  const hours = Number(hour);
  if (hours < 1 || hours > 12) return '--';
  return String((hours % 12) + (/^p/i.test(half) ? 12 : 0)).padStart(2, '0');
}

const literal = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
