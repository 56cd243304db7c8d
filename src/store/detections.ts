/** How the appliance opens `detections.db` for writing, with a plain-English refusal of what is damaged. */
import { Refused } from '../refused.ts';
import type { Database } from './database.ts';
import { isDamage } from './database-errors.ts';
import { DETECTIONS_MIGRATIONS } from './detections-schema.ts';
import type { Migrated } from './migrate.ts';
import { openWriter } from './writer.ts';

/**
 * @param onMigrated told when the schema was an older one
 * @throws Refused `configuration` when it is damaged, no database of ours, or newer
 */
export function openDetections(path: string, onMigrated?: (migrated: Migrated) => void): Database {
  try {
    return openWriter(path, DETECTIONS_MIGRATIONS, onMigrated);
  } catch (error) {
    if (!isDamage(error)) throw error;
    throw new Refused(
      'configuration',
      `${path} is damaged or no database; nothing is served from it. Put a backup in its place: wirewatch restore FILE --replace`,
      { cause: error },
    );
  }
}
