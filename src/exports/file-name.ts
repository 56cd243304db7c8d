/**
 * The names of files in the drop folder.
 *
 * `<export>.<window start>.<form>` is a ten-minute window of an export; `<export>.backfill-<label>.<form>` is history
 * outside any window. The setting `file_name` adds other names of windows. Any other name is refused, unless it marks the
 * file as unfinished.
 */
import { EXPORT_NAMES, type ExportName, isExportName } from '../detection/content-type.ts';
import { AHEAD_MS_MAX, DAY_MS, formatMs, parseWindowStart, WINDOW_MS } from '../time.ts';
import { localClock } from '../zone-days.ts';
import { nameFormat } from './time-format.ts';

export const FORMS = ['ndjson', 'ndjson.gz', 'ndjson.zst', 'csv', 'csv.gz', 'csv.zst'] as const;
export type Form = (typeof FORMS)[number];

/** A window's file has `window_start`, a backfill `label`; the other one is null. */
export interface ExportFileName {
  readonly name: string;
  readonly export: ExportName;
  readonly window_start: number | null;
  readonly label: string | null;
}

export type ParsedName =
  | { readonly kind: 'export'; readonly file: ExportFileName }
  /** Still being written: ignored. */
  | { readonly kind: 'unfinished' }
  | { readonly kind: 'refused'; readonly reason: string };

/** The names that an agency's own system gives to the files of an export; plain data, of the settings. */
export interface OwnName {
  /** With the start of the window in letters: `hits_{YYYYMMDD}_{HHmm}.csv`; empty: it has none. */
  readonly file_name: string;
  /** The time zone of the start of the window; empty: UTC. */
  readonly time_zone: string;
}
export type OwnNames = Readonly<Record<ExportName, OwnName>>;

export type NameParser = (name: string) => ParsedName;

const UNFINISHED = /^\.|\.(tmp|part|partial)$/;
const FORM_END = /(?:\.(ndjson|csv))?(\.gz|\.zst)?$/;
const LABEL = /^[a-z0-9._-]{1,64}$/;
const EXPECTED =
  'expected <export>.<window start>.<form> such as newswire.20261121T1010Z.ndjson.gz, or <export>.backfill-<label>.<form>';

export function parseFileName(name: string): ParsedName {
  if (UNFINISHED.test(name)) return { kind: 'unfinished' };
  const dot = name.indexOf('.');
  const exportName = name.slice(0, dot);
  if (dot < 0 || !isExportName(exportName))
    return refused(
      `the name must begin with ${EXPORT_NAMES.map((name) => `"${name}."`).join(' or ')}; ${EXPECTED}`,
    );
  const form = FORMS.filter((candidate) => name.endsWith(`.${candidate}`)).at(-1);
  if (!form) return refused(`the name must end in one of ${FORMS.join(', ')}; ${EXPECTED}`);
  const middle = name.slice(dot + 1, -form.length - 1);
  if (middle.startsWith('backfill-')) {
    const label = middle.slice('backfill-'.length);
    if (!LABEL.test(label))
      return refused(`the label of a backfill must have 1 to 64 characters from a-z 0-9 . _ -; ${EXPECTED}`);
    return { kind: 'export', file: { name, export: exportName, window_start: null, label } };
  }
  const window_start = parseWindowStart(middle);
  if (window_start === null)
    return refused(
      `"${middle}" is not the start of a window: it must be YYYYMMDDTHHMMZ in UTC, a multiple of ten minutes; ${EXPECTED}`,
    );
  return { kind: 'export', file: { name, export: exportName, window_start, label: null } };
}

/** Parses names of the drop folder, also those of the setting `file_name`. */
export function nameParser(names: OwnNames): NameParser {
  const named = EXPORT_NAMES.filter((name) => names[name].file_name !== '');
  const forms = named.map((name) => names[name].file_name);
  const parsers = named.map((name) => ownNameParser(name, names[name]));
  return (name) => {
    const parsed = parseFileName(name);
    if (parsed.kind !== 'refused') return parsed;
    const own = parsers.map((parse) => parse(name)).find((found) => found !== null);
    if (own !== undefined || forms.length === 0) return own ?? parsed;
    return refused(`${parsed.reason}; or as file_name in the settings: ${forms.join(' or ')}`);
  };
}

/** @returns a parser that gives null for a name of another form */
function ownNameParser(exportName: ExportName, { file_name, time_zone }: OwnName) {
  const format = nameFormat(file_name);
  const clock = localClock(time_zone === '' ? 'UTC' : time_zone);
  return (name: string): ParsedName | null => {
    const time = format?.parse(name) ?? null;
    if (time === null) return null;
    const start = time.isLocal ? clock(time.ms) : time.ms;
    const written = formatMs(time.ms)
      .replace('T', ' ')
      .replace(/(:00)?Z$/, '');
    if (start === 'skipped') return refused(`the clocks in ${time_zone} skip ${written}`);
    if (start === 'twice')
      return refused(
        `the clocks in ${time_zone} show ${written} twice. Let the names be in UTC, or rename the file to ${exportName}.YYYYMMDDTHHMMZ.${formOf(name)}, in UTC`,
      );
    if (start % WINDOW_MS !== 0)
      return refused(`${written} is not the start of a window: it must be a multiple of ten minutes`);
    return { kind: 'export', file: { name, export: exportName, window_start: start, label: null } };
  };
}

/** By the end of the name; CSV if it is no other. */
export function formOf(name: string): Form {
  const [, kind = 'csv', packing = ''] = FORM_END.exec(name) ?? [];
  return FORMS.find((form) => form === `${kind}${packing}`) ?? 'csv';
}

/** A file that was read before, whatever its name would be taken for now. */
export function recordedFile(
  record: Omit<ExportFileName, 'export'> & { readonly export: ExportName | null },
): ExportFileName | null {
  const { name, export: exportName, window_start, label } = record;
  return exportName === null ? null : { name, export: exportName, window_start, label };
}

/** Whether a window's file can be read now: the window must have ended. */
export function windowReadiness(windowStartMs: number, nowMs: number): 'ready' | 'early' | 'too far ahead' {
  if (windowStartMs > nowMs + DAY_MS) return 'too far ahead';
  return windowStartMs + WINDOW_MS <= nowMs ? 'ready' : 'early';
}

/** The time at which a window ends, for people: `23:00 UTC`. */
export const endText = (windowStartMs: number) => `${formatMs(windowStartMs + WINDOW_MS).slice(11, 16)} UTC`;

/** The name with the ingest number before the form, for use where the name itself is taken. */
export function numberedName(name: string, number: string): string {
  const [end = ''] = FORM_END.exec(name) ?? [];
  return `${name.slice(0, name.length - end.length)}.${number}${end}`;
}

/** The skipped rows of a file: by its name alone, this could be a backfill. */
const SKIPPED_NOTES = /\.(ndjson|csv)(\.(gz|zst))?\.skipped\.ndjson$/;

/** The name under which an archived file was dropped, without such a number; null: it is no export file. */
export function droppedName(name: string, parse: NameParser): string | null {
  if (SKIPPED_NOTES.test(name)) return null;
  const unnumbered = unnumberedName(name);
  // The number may have a second one behind it, and a name of the setting may itself end in a number.
  const candidates = [name, unnumbered, unnumberedName(unnumbered)];
  return candidates.find((candidate) => parse(candidate).kind === 'export') ?? null;
}

function unnumberedName(name: string): string {
  const [end = ''] = FORM_END.exec(name) ?? [];
  return name.slice(0, name.length - end.length).replace(/\.\d+$/, '') + end;
}

/** The order in which waiting files are read: by window, backfills last. File times do not count. */
export function compareFiles(a: ExportFileName, b: ExportFileName): number {
  const rank = (file: ExportFileName) => file.window_start ?? Infinity;
  if (rank(a) !== rank(b)) return rank(a) < rank(b) ? -1 : 1;
  if (a.name === b.name) return 0;
  return a.name < b.name ? -1 : 1;
}

/**
 * The bounds and the default for times in a file.
 * @param earliest the setting; null: five years before the start of the window, or before a backfill is read
 */
export function timesOf({ window_start }: ExportFileName, readAtMs: number, earliest: string | null) {
  const [startMs, endMs] =
    window_start === null ? [readAtMs, readAtMs] : [window_start, window_start + WINDOW_MS];
  return {
    earliest: earliest ?? formatMs(new Date(startMs).setUTCFullYear(new Date(startMs).getUTCFullYear() - 5)),
    latest: formatMs(endMs + AHEAD_MS_MAX),
    exported_at_default: formatMs(readAtMs),
  };
}

export const switchedOff = (exportName: ExportName): string =>
  `the export ${exportName} is switched off. To read its files, set [exports.${exportName}] enabled = true.`;

const refused = (reason: string) => ({ kind: 'refused', reason }) as const;
