/** How the appliance opens `detections.db` for writing, with a plain-English refusal of what is damaged. */
import { Refused } from '../refused.ts';
import { type Database, isDamage, openWriter } from './database.ts';
import { DETECTIONS_MIGRATIONS } from './detections-schema.ts';

/** @throws Refused `configuration` when it is damaged, no database of ours, or newer */
export function openDetections(path: string): Database {
  try {
    return openWriter(path, DETECTIONS_MIGRATIONS);
  } catch (error) {
    if (!isDamage(error)) throw error;
    throw new Refused(
      'configuration',
      `${path} is damaged or no database; nothing is served from it. Put the file back from a copy of the data folder.`,
      { cause: error },
    );
  }
}
