/**
 * The settings of one export: whether it is in use, and how its files differ from the export format (manual,
 * your-exports.md). What they mean is in exports/.
 */
import { type Static, type TProperties, type TSchema, Type } from '@sinclair/typebox';
import { EXPORT_NAMES, type ExportName, perExport } from '../detection/content-type.ts';
import { Bad } from '../exports/article-address.ts';
import { readValue } from '../exports/check-row.ts';
import { EXPORT_COLUMNS, exportColumn } from '../exports/columns.ts';
import { type OwnNames, parseFileName } from '../exports/file-name.ts';
import type { Mapping, Mappings } from '../exports/mapping.ts';
import { nameFormat, sampleName, timeFormat } from '../exports/time-format.ts';
import { didYouMean } from '../nearest.ts';
import { unlessError } from '../refused.ts';
import { zoneName } from '../time-zone.ts';
import { shown } from './option-values.ts';

const FIXED_OFFSET = /^[+-]([01]\d|2[0-3]):[0-5]\d$/;

const Value = Type.Union([Type.String(), Type.Number(), Type.Boolean()]);

/** A table in which every name is known. */
export const section = <Members extends TProperties>(members: Members) =>
  Type.Object(members, { additionalProperties: false });

/** @param problems what is wrong with a table of the right types, by its members */
function table<Schema extends TSchema>(
  schema: Schema,
  description: string,
  expected: string,
  problems: (value: Static<Schema>) => string[],
): Schema {
  return { ...schema, default: {}, description, expected, problems };
}

/** A text that may be empty. @param isRight whether another one is what was expected */
export function textOrNone(isRight: (text: string) => boolean, expected: string, description: string) {
  const is = (text: string) => text === '' || isRight(text);
  return Type.String({ is, expected, default: '', description });
}

export function exportSettings(exportName: ExportName) {
  return section({
    enabled: Type.Boolean({
      default: true,
      description: `Whether the ${exportName} export is in use. If false, its files are refused, it has no streams, and as_of and health ignore it.`,
    }),
    columns: table(
      Type.Record(Type.String(), Type.String({ minLength: 1, maxLength: 1000 })),
      'For columns that have another name in the files: our name = theirs.',
      'a table such as { subscription_id = "Customer" }',
      (columns) => Object.keys(columns).flatMap((name) => columnProblems(name, exportName)),
    ),
    values: table(
      Type.Record(Type.String(), Type.Record(Type.String(), Value)),
      'For columns whose values are written otherwise: theirs = ours. An empty text is no value.',
      'a table such as { article_print = { "Y" = true, "N" = false } }',
      (values) =>
        Object.entries(values).flatMap(([name, theirs]) => [
          ...columnProblems(name, exportName),
          ...Object.entries(theirs).flatMap(([text, value]) =>
            valueProblems(`${name}.${text}`, name, value, exportName),
          ),
        ]),
    ),
    constants: table(
      Type.Record(Type.String(), Value),
      'Values of columns that the files lack.',
      'a table such as { source_language = "de" }',
      (constants) =>
        Object.entries(constants).flatMap(([name, value]) => [
          ...columnProblems(name, exportName),
          ...valueProblems(name, name, value, exportName),
        ]),
    ),
    csv: table(
      section({
        delimiter: Type.Optional(Type.String()),
        quote: Type.Optional(Type.String()),
        encoding: Type.Optional(Type.String()),
        header: Type.Optional(Type.Array(Type.String(), { maxItems: 1000 })),
      }),
      'How CSV files are written: delimiter, quote (empty for none), encoding (a label of the Encoding Standard), and header: the names of the columns, if the files have no header line.',
      'a table of delimiter, quote, encoding and header, such as { delimiter = ";", encoding = "windows-1252" }',
      csvProblems,
    ),
    time_format: textOrNone(
      isTimeFormat,
      'empty, or a format of YYYY or YY, MM or M, DD or D, HH or H (hh or h with A), mm, ss, S (fractions), Z (offset), such as DD.MM.YYYY HH:mm:ss',
      'How times are written. ISO 8601 with Z or an offset is always read.',
    ),
    time_zone: textOrNone(
      (text) => FIXED_OFFSET.test(text) || zoneName(text) !== null,
      'empty, an IANA time zone such as Europe/Berlin, or an offset such as +01:00',
      'Time zone of times without an offset, and of file_name. Empty: such a time is an error, and file_name is in UTC.',
    ),
    decimal: Type.Union([Type.Literal('.'), Type.Literal(',')], {
      default: '.',
      description: 'Decimal separator of numbers in text.',
    }),
    file_name: textOrNone(
      isFileName,
      'empty, or the name of a file with the start of its window, such as hits_{YYYYMMDD}_{HHmm}.csv; it ends in neither .tmp, .part nor .partial, and begins with no dot',
      'Another name that the files of windows may have: the start of the window, in time_zone, by the letters of time_format in braces.',
    ),
  });
}

type ExportSettings = Static<ReturnType<typeof exportSettings>>;
type AllExports = Readonly<Record<ExportName, ExportSettings>>;

/** What ingest needs of the settings: plain data. */
export function exportShapes({ exports }: { readonly exports: AllExports }): {
  readonly mappings: Mappings;
  readonly file_names: OwnNames;
} {
  return {
    mappings: perExport((name) => mappingOf(exports[name])),
    file_names: perExport((name) => {
      const { file_name, time_zone } = exports[name];
      return { file_name, time_zone };
    }),
  };
}

/** Null if nothing is set: the files are in our own form. */
function mappingOf({ enabled: _, file_name: __, ...mapping }: ExportSettings): Mapping | null {
  const isSet = Object.values(mapping).some((value) =>
    typeof value === 'string' ? value !== '' && value !== '.' : Object.keys(value).length > 0,
  );
  return isSet ? mapping : null;
}

/** Finds what is wrong between the settings of an export. @param refuse gets each setting with its problem */
export function refuseShapes(exports: AllExports, refuse: (setting: string, problem: string) => void): void {
  for (const name of EXPORT_NAMES) {
    const { columns, constants, csv, time_format, time_zone, file_name } = exports[name];
    const wrong = (setting: string, problem: string) => refuse(`exports.${name}.${setting}`, problem);
    const both = Object.keys(constants).find((column) => Object.hasOwn(columns, column));
    if (both !== undefined) wrong('constants', `${both} is also in columns; remove one of them`);
    if (time_format !== '' && time_zone === '' && timeFormat(time_format)?.fields.has('offset') !== true)
      wrong('time_format', 'such times have no offset: set time_zone, too');
    for (const [ours, theirs] of Object.entries(columns))
      if (csv.header?.includes(theirs) === false)
        wrong('columns', `${ours} = "${theirs}": csv.header has no such name`);
    if (file_name === '') continue;
    const sample = sampleName(file_name);
    if (parseFileName(sample).kind === 'export')
      wrong('file_name', `${sample} is a name that Wirewatch gives a meaning itself, in UTC`);
    if (EXPORT_NAMES.some((other) => other !== name && nameFormat(exports[other].file_name)?.parse(sample)))
      wrong('file_name', `the other export also has ${sample}; names must tell the exports apart`);
  }
}

function columnProblems(name: string, exportName: ExportName): string[] {
  const known = EXPORT_COLUMNS.filter(({ exports }) => exports.includes(exportName)).map((own) => own.name);
  if (known.some((own) => own === name)) return [];
  return [`${name}: ${exportName} files have no such column${didYouMean(name, known)}`];
}

function valueProblems(at: string, name: string, value: string | number | boolean, exportName: ExportName) {
  const column = exportColumn(name);
  if (column === undefined || value === '') return [];
  const limits = { export: exportName, earliest: '', latest: '9999-12-31T23:59:59Z' };
  const read = readValue(value, column.kind, limits);
  return read instanceof Bad ? [`${at}: expected ${read.expected}, found ${shown(value)}`] : [];
}

function csvProblems(csv: Mapping['csv']): string[] {
  const { delimiter = ',', quote = '"', encoding = 'utf-8', header = ['-'] } = csv;
  const isOne = (text: string) => [...text].length === 1 && !/[\r\n]/.test(text);
  return [
    !isOne(delimiter) && `delimiter: expected one character, such as ";" or "\\t", found ${shown(delimiter)}`,
    quote !== '' && !isOne(quote) && `quote: expected one character, or nothing, found ${shown(quote)}`,
    quote === delimiter && 'quote: it is also the delimiter',
    unlessError(null, () => new TextDecoder(encoding)) === null &&
      `encoding: expected a label such as utf-8, windows-1252 or utf-16le, found ${shown(encoding)}`,
    (header.length === 0 || new Set(header).size < header.length) &&
      'header: expected the name of each column of the files, each only once',
  ].filter((problem) => problem !== false);
}

const DAY_FIELDS = ['year', 'month', 'day'] as const;
const MINUTE_FIELDS = [...DAY_FIELDS, 'hour', 'minute'] as const;

function isTimeFormat(text: string): boolean {
  const fields = timeFormat(text)?.fields;
  return text.length <= 100 && DAY_FIELDS.every((field) => fields?.has(field));
}

function isFileName(text: string): boolean {
  const fields = nameFormat(text)?.fields;
  const isWhole = MINUTE_FIELDS.every((field) => fields?.has(field));
  return isWhole && text.length <= 150 && !/^\.|[/\0]|\.(tmp|part|partial)$/.test(text);
}
