/** The kind of installation of a data folder: the keys of a demonstration and of a lab are public, so no appliance serves them. */
import { randomBytes } from 'node:crypto';
import { now } from '../clock.ts';
import { misconfigured, Refused } from '../refused.ts';
import { ACCESS_SCHEMA } from './access-schema.ts';
import { type Database, isEmpty, refuseForeign, UnknownSchema, writing } from './database.ts';
import { DETECTIONS_SCHEMA } from './detections-schema.ts';
import type { DataFolder } from './folder.ts';

export type InstallationKind = 'appliance' | 'demo' | 'lab';

const INSERT_INSTALLATION = `
  INSERT INTO installation (id, kind, uid, created_at) VALUES (1, :kind, :uid, :created_at) ON CONFLICT DO NOTHING`;

/** Records the kind in access.db on first use, and checks it later. @throws Refused `configuration` if it is of another kind */
export function ensureInstallation(db: Database, kind: InstallationKind): void {
  const found = writing(db, () => {
    db.prepare(INSERT_INSTALLATION).run({ kind, uid: randomBytes(8).toString('hex'), created_at: now() });
    return installationKind(db);
  });
  requireKind(db.name, found, kind);
}

/** @param path of its access.db. @param found null: not recorded yet. @throws Refused `configuration` if it is of another kind */
export function requireKind(path: string, found: InstallationKind | null, kind: InstallationKind): void {
  if (found === kind || found === null) return;
  throw misconfigured(
    kind === 'appliance'
      ? `${path} was created by "wirewatch ${found}", whose keys are public. Name another folder with --data.`
      : `${path} belongs to ${found === 'appliance' ? 'an existing installation' : `"wirewatch ${found}"`}, which the ${kind} does not change. Name another folder with --data.`,
  );
}

/** Null: not recorded yet. */
export const installationKind = (db: Database): InstallationKind | null =>
  db.prepare<[], InstallationKind>('SELECT kind FROM installation').pluck().get() ?? null;

/** @throws Refused `configuration` if a database in a data folder is not of this program; call it before anything is changed */
export function refuseForeignDatabases({ access, detections }: DataFolder): void {
  for (const [path, schema] of [
    [access, ACCESS_SCHEMA],
    [detections, DETECTIONS_SCHEMA],
  ] as const) {
    if (isEmpty(path)) continue;
    try {
      refuseForeign(path, schema);
    } catch (error) {
      // One with other tables is rebuilt from its log; whoever opens one that cannot be read says so.
      if (error instanceof Refused && !(error instanceof UnknownSchema)) throw error;
    }
  }
}
