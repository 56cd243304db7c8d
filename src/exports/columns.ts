/**
 * The columns of export files, from the table of fields: those that identify a detection, then the other required ones,
 * then the rest.
 */
import { CONTENT_TYPE_OF_EXPORT, EXPORT_NAMES, type ExportName } from '../detection/content-type.ts';
import { type ColumnKind, type ExportRow, FIELD_TABLE } from '../detection/fields.ts';

export type ColumnName = keyof ExportRow;

interface ExportColumn {
  readonly name: ColumnName;
  readonly kind: ColumnKind;
  readonly required: boolean;
  readonly exports: readonly ExportName[];
}

export const EXPORT_COLUMNS: readonly ExportColumn[] = FIELD_TABLE.flatMap(({ column, content_types }) => {
  const exports = EXPORT_NAMES.filter((name) =>
    content_types.some((type) => type === CONTENT_TYPE_OF_EXPORT[name]),
  );
  return column === null ? [] : [{ ...column, exports }];
}).sort((a, b) => rankOf(a) - rankOf(b));

const BY_NAME = new Map<string, ExportColumn>(EXPORT_COLUMNS.map((column) => [column.name, column]));

export const exportColumn = (name: string) => BY_NAME.get(name);

function rankOf({ required, kind }: Omit<ExportColumn, 'exports'>): number {
  if (!required) return 2;
  return kind.type === 'integer' ? 0 : 1;
}
