/** The machine-readable description of a detection, made from the field table. */
import type { ContentType } from './content-type.ts';
import { columnOf, FIELDS, type FieldType } from './fields.ts';

/** One field as the schema lists it, members in the API's order. */
export interface SchemaField {
  readonly path: string;
  /** Its column in files. */
  readonly column: string;
  /** From 1 on. */
  readonly position: number;
  readonly type: FieldType;
  readonly nullable: boolean;
  readonly content_types: readonly ContentType[];
  readonly description: string;
}

/** Every field in detection order. */
export function schemaFields(): SchemaField[] {
  return FIELDS.map(({ path, type, nullable, content_types, description }, index) => ({
    path,
    column: columnOf(path),
    position: index + 1,
    type,
    nullable,
    content_types,
    description,
  }));
}
