/**
 * Exports of another shape: reads the columns and values of a file as those of the export format (manual,
 * your-exports.md), by the settings of `[exports.newswire]`. The rows are then checked like any others. Pure.
 */
import type { ExportName } from '../detection/content-type.ts';
import { getOrMake } from '../get-or-make.ts';
import { formatMs, parseSeconds } from '../time.ts';
import { localClock } from '../zone-days.ts';
import { Bad } from './article-address.ts';
import type { RawRow, RowError } from './check-row.ts';
import { exportColumn } from './columns.ts';
import { timeFormat } from './time-format.ts';

type Scalar = string | number | boolean;

/** How a file says what the export format says; plain data, of the settings, and kept with each file that was read so. */
export interface Mapping {
  /** The file's name of a column, by ours. */
  readonly columns: Readonly<Record<string, string>>;
  /** By our column: our value of the file's. An empty text is no value. */
  readonly values: Readonly<Record<string, Readonly<Record<string, Scalar>>>>;
  /** The values of columns that the file lacks. */
  readonly constants: Readonly<Record<string, Scalar>>;
  readonly csv: {
    readonly delimiter?: string;
    readonly quote?: string;
    readonly encoding?: string;
    readonly header?: readonly string[];
  };
  readonly time_format: string;
  readonly time_zone: string;
  readonly decimal: '.' | ',';
}

/** By export; null: its files are in our own form. */
export type Mappings = Readonly<Record<ExportName, Mapping | null>>;

/** A value that is read; {@link Bad} for one that cannot be. */
export type Reader = (given: unknown) => unknown;

const ISO_LOCAL = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?$/;
const VALUES_NAMED_MAX = 10;

export type ColumnReader = ReturnType<typeof columnReader>;

/** Reads the columns of one file under a mapping. */
export function columnReader(mapping: Mapping) {
  const { columns } = mapping;
  const constants: readonly (readonly [string, Scalar])[] = Object.entries(mapping.constants);
  const readTime = timeReader(mapping);
  const readers = new Map<string, Reader>();

  /** The file's name of one of our columns. */
  const nameOf = (ours: string): string => (Object.hasOwn(columns, ours) ? (columns[ours] ?? ours) : ours);
  /** Our columns by the file's name. */
  const oursOf = Map.groupBy(Object.keys(columns), nameOf);

  /**
   * What a column of the file is read as: names of ours, or its own. A column with one of our names is ignored if
   * `columns` gives that name to another one, which the file has.
   */
  function namesOf(theirs: string, isInFile: (theirs: string) => boolean): readonly string[] {
    const ours = oursOf.get(theirs);
    if (ours !== undefined) return ours;
    const other = nameOf(theirs);
    return other !== theirs && isInFile(other) ? [] : [theirs];
  }

  function ruled(name: string, plain: Reader): Reader {
    const type = exportColumn(name)?.kind.type;
    const isDecimal = type === 'score' && mapping.decimal === ',';
    const read = isDecimal ? decimal : type === 'timestamp' && readTime;
    if (!read) return plain;
    return (given) => (typeof given === 'string' && given !== '' ? read(given) : plain(given));
  }

  /** By the list of values, if the column has one. */
  function listed(name: string, otherwise: Reader): Reader {
    if (!Object.hasOwn(mapping.values, name)) return otherwise;
    const values = new Map(Object.entries(mapping.values[name] ?? {}));
    const type = exportColumn(name)?.kind.type;
    const named = [...values.keys()].slice(0, VALUES_NAMED_MAX).map((value) => JSON.stringify(value));
    const more = values.size > VALUES_NAMED_MAX ? ', …' : '';
    const isText = type !== 'boolean' && type !== 'integer' && type !== 'score';
    const unlisted = new Bad(`one of the values in the settings (${named.join(', ')}${more})`);
    return (given) => {
      const text = textOf(given);
      const value = text === null ? undefined : values.get(text);
      if (value !== undefined) return value === '' ? null : value;
      const read = otherwise(given);
      return typeof read !== 'string' || isText || read === '' ? read : unlisted;
    };
  }

  /** @param plain reads a value for which there is no rule */
  function reader(name: string, plain: Reader = (given) => given): Reader {
    // Each row of an NDJSON file may have others.
    if (exportColumn(name) === undefined) return plain;
    return getOrMake(readers, name, () => listed(name, ruled(name, plain)));
  }

  return {
    ...{ constants, nameOf, namesOf, reader },
    /** Whether `columns` has the file's name of a column. */
    isNamed: (theirs: string): boolean => oursOf.has(theirs),
    /** Reads an object of an NDJSON file. */
    row(theirs: RawRow): RawRow {
      const raw: Record<string, unknown> = Object.create(null);
      for (const key of Object.keys(theirs))
        for (const name of namesOf(key, (other) => Object.hasOwn(theirs, other)))
          raw[name] = reader(name)(theirs[key]);
      for (const [name, value] of constants) if (!(name in raw)) raw[name] = value;
      return raw;
    },
  };
}

export type Origin = ReturnType<typeof originOf>;

/**
 * The fields of a row as the file has them, to name them in errors.
 * @param find a value of the row by the file's name; undefined if there is none
 */
export function originOf({ nameOf, isNamed }: ColumnReader, find: (theirs: string) => unknown) {
  /** By the file's name; without it by ours, unless the settings give that to another column. */
  function givenFor(ours: string): unknown {
    const found = find(nameOf(ours));
    return found === undefined && !isNamed(ours) ? find(ours) : found;
  }

  /** Whether the row has one of our columns: otherwise it is a constant. */
  const has = (ours: string): boolean => givenFor(ours) !== undefined;

  /** The file's column and value for one of ours, as far as they are others than ours. */
  function of(ours: string, value: unknown): Pick<RowError, 'column_in_file' | 'value_in_file'> {
    const name = nameOf(ours);
    const given = givenFor(ours);
    const isOther = given !== undefined && given !== value && textOf(given) !== textOf(value);
    return {
      ...(name !== ours && find(name) !== undefined && { column_in_file: name }),
      ...(isOther && { value_in_file: given }),
    };
  }

  /** An error with the file's own column and value. */
  function named(error: RowError): RowError {
    const { column, value } = error;
    if (column === null) return error;
    // What the row lacks has the name that the settings give it.
    const { column_in_file = has(column) ? column : nameOf(column), value_in_file } = of(column, value);
    return {
      ...error,
      ...(column_in_file !== column && { column_in_file }),
      // What cannot be read has no value of ours.
      ...(value_in_file !== undefined && (value === null ? { value: value_in_file } : { value_in_file })),
    };
  }

  return { has, of, named };
}

/** A text, number or boolean as text, empty without a value; null for an object, of which String may throw. */
const textOf = (value: unknown) => (typeof value === 'object' && value !== null ? null : String(value ?? ''));

function decimal(text: string): number | Bad {
  return /^-?(0|[1-9]\d*)(,\d+)?$/.test(text)
    ? Number(text.replace(',', '.'))
    : new Bad('a number with a decimal comma, such as 62,5');
}

/** Null: times are in our form. */
function timeReader({ time_format, time_zone }: Mapping): ((text: string) => string | Bad) | null {
  if (time_format === '' && time_zone === '') return null;
  const format = time_format === '' ? null : timeFormat(time_format);
  const clock = time_zone === '' ? null : localClock(time_zone);
  const form = format === null ? 'YYYY-MM-DDTHH:mm:ss' : time_format;
  const unread = new Bad(`a time in the form ${form}, or in ISO 8601 with Z or an offset`);
  const isoLocal = (text: string) => {
    if (clock === null || !ISO_LOCAL.test(text)) return null;
    const seconds = parseSeconds(`${text.slice(0, 10)}T${text.slice(11)}${text.length === 16 ? ':00' : ''}Z`);
    return seconds === null ? null : { ms: seconds * 1000, isLocal: true };
  };
  return (text) => {
    const read = format?.parse(text) ?? null;
    if (read === null && parseSeconds(text) !== null) return text;
    const time = read ?? isoLocal(text);
    if (time === null) return unread;
    const at = time.isLocal && clock !== null ? clock(time.ms) : time.ms;
    if (at === 'skipped') return new Bad(`a local time that clocks in ${time_zone} do not skip`);
    if (at === 'twice')
      return new Bad(
        `a local time that clocks in ${time_zone} show once, not twice`,
        'Let the system write UTC, or set time_zone to a fixed offset such as +01:00.',
      );
    return formatMs(at);
  };
}
