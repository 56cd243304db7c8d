/** Whether this program may open what is in a data folder: looked at before anything in it is changed. */
import { Refused } from '../refused.ts';
import { ACCESS_MIGRATIONS } from './access-schema.ts';
import { DETECTIONS_MIGRATIONS } from './detections-schema.ts';
import type { DataFolder } from './folder.ts';
import { refuseForeign } from './writer.ts';

/**
 * Both are looked at before the first is brought up to date: a refusal leaves everything as it was.
 *
 * @throws Refused `configuration` when one is newer or not ours
 */
export function refuseNewer({ access, detections }: DataFolder): void {
  const databases = [
    { path: access, migrations: ACCESS_MIGRATIONS },
    { path: detections, migrations: DETECTIONS_MIGRATIONS },
  ];
  for (const { path, migrations } of databases) {
    try {
      refuseForeign(path, migrations);
    } catch (error) {
      // What cannot be read at all is told by those who open it.
      if (error instanceof Refused) throw error;
    }
  }
}
