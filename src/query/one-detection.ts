/** One detection by its id (GET /v1/detections/{id}). */
import type { StreamName } from '../detection/content-type.ts';
import { streamOfId } from '../detection/id.ts';
import { type Database, preparedOnce } from '../store/database.ts';
import { DatabaseDamage } from '../store/database-errors.ts';
import type { StoredText } from '../store/row-checksum.ts';
import { withBaseUrl } from './base-url.ts';
import { DETECTION_COLUMNS, detectionOf, detectionTables } from './detection-text.ts';
import { type Projection, renderProjected } from './projection.ts';

export interface OneQuery {
  readonly id: string;
  /** Every stream of the key: detections of others do not exist for it. */
  readonly streams: readonly StreamName[];
  readonly projection: Projection | null;
  /** Of {@link jsonBaseUrl}. */
  readonly baseUrl: Buffer;
}

export const ONE_DETECTION = `SELECT ${DETECTION_COLUMNS} FROM ${detectionTables('detection')} WHERE detection.id = @id`;

const oneDetection = preparedOnce<StoredText>(ONE_DETECTION);

/** The latest version as JSON text; null where no stream of the key has it. */
export function readOneDetection(
  db: Database,
  { id, streams, projection, baseUrl }: OneQuery,
): string | null {
  if (!streams.includes(streamOfId(id))) return null;
  const found = oneDetection(db).get({ id });
  if (found === undefined) return null;
  const text = detectionOf(found);
  if (!text.startsWith(`{"id":"${id}",`))
    throw new DatabaseDamage(`the place of ${id} has another detection`);
  const body = withBaseUrl(text, baseUrl);
  return projection === null ? body : renderProjected(body, projection);
}
