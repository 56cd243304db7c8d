/** The columns of export files as the manual lists them: made from the columns themselves. */
import { EXPORT_NAMES, MATCH_TYPES } from '../detection/content-type.ts';
import { columnOf, FIELDS } from '../detection/fields.ts';
import {
  CHECKED_COLUMNS,
  type ColumnKind,
  type ColumnName,
  EXPORT_COLUMNS,
  type ExportColumn,
} from '../ingest/export-columns.ts';
import { wrapped } from './text.ts';

/** What the description of the detection's field does not say to a writer. */
const NOTES: Partial<Record<ColumnName, string>> = {
  first_detected_at: 'The earliest that was ever given for a detection is the one that counts.',
  last_scored_at: 'Decides which of two rows is the newer one; it is not compared with first_detected_at.',
  first_detected_estimated:
    'Default: false, in a backfill true. It goes with the earliest first_detected_at; at the same instant, false wins.',
  exported_at: 'Default: when the row was read.',
  source_image_url:
    'Default: an address that the appliance signs, at which it serves the photo from the folder [photos] folder.',
  article_url: 'Licensed by: wirewatch account set ID --print-metadata on.',
  article_domain:
    'What is given is reduced to it, in lower case and punycode. Default: taken from article_url.',
  article_publisher_id:
    'Without it the detection has no publisher, and article_publisher_name is passed over.',
  article_publisher_name: 'White space around it is cut off.',
  article_print: 'Default: false.',
};

const DESCRIPTIONS = new Map(FIELDS.map((field) => [columnOf(field.path), field.description]));

export function columnReference(): string {
  return EXPORT_COLUMNS.map(entry).join('\n');
}

/** What the columns must say that an export may carry but that are the appliance's to give. */
export function checkedColumns(): string {
  const { text, image } = MATCH_TYPES;
  return `${CHECKED_COLUMNS.join(', ')} (text or image; ${text} or ${image}; the band of the score)`;
}

function entry(column: ExportColumn): string {
  const head = `${column.name.padEnd(28)}${column.required ? 'required' : 'optional'}, ${exportsOf(column)}`;
  const description = DESCRIPTIONS.get(column.name) ?? '';
  const note = NOTES[column.name] ?? '';
  return `${head}\n${wrapped(`${kindText(column.kind)}. ${description} ${note}`.trim(), '    ')}`;
}

function exportsOf({ exports }: ExportColumn): string {
  return exports.length === EXPORT_NAMES.length ? 'both exports' : `${exports.join(', ')} only`;
}

function kindText(kind: ColumnKind): string {
  switch (kind.type) {
    case 'integer':
      return `Integer, ${kind.least.toLocaleString('en-US')} to ${kind.most.toLocaleString('en-US')}`;
    case 'score':
      return 'Number, 0 to 100 in newswire, 0 to 99 in imagewire';
    case 'boolean':
      return 'Boolean';
    case 'address':
      return 'Address';
    case 'string':
      return kind.characters_max === undefined ? 'String' : `String, up to ${kind.characters_max} characters`;
    case 'timestamp':
      return {
        none: 'Timestamp',
        latest: 'Timestamp, not after the latest',
        both: 'Timestamp, from the earliest to the latest',
      }[kind.bound];
  }
}
