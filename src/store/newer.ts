/** Whether what is in a data folder is this program's: looked at before anything in it is changed. */
import { Refused } from '../refused.ts';
import { ACCESS_SCHEMA } from './access-schema.ts';
import { isEmpty } from './database.ts';
import { DETECTIONS_SCHEMA } from './detections-schema.ts';
import type { DataFolder } from './folder.ts';
import { UnknownSchema } from './schema.ts';
import { refuseForeign } from './writer.ts';

/** @throws Refused `configuration` when a database is none of ours: a refusal leaves everything as it was */
export function refuseNewer({ access, detections }: DataFolder): void {
  const databases = [
    { path: access, schema: ACCESS_SCHEMA },
    { path: detections, schema: DETECTIONS_SCHEMA },
  ];
  for (const { path, schema } of databases) {
    if (isEmpty(path)) continue;
    try {
      refuseForeign(path, schema);
    } catch (error) {
      // One with other tables is made anew from its log; what cannot be read is told by those who open it.
      if (error instanceof Refused && !(error instanceof UnknownSchema)) throw error;
    }
  }
}
