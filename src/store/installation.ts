/**
 * What kind of installation a data folder belongs to. The folders of a demonstration and of a lab have keys that
 * everybody knows, so the appliance must never serve from them; nor may those write into the appliance's.
 */
import { now } from '../clock.ts';
import { Refused } from '../refused.ts';
import { type Database, writing } from './database.ts';

export type InstallationKind = 'appliance' | 'demo' | 'lab';

const INSERT_INSTALLATION = `
  INSERT INTO installation (id, kind, created_at) VALUES (1, :kind, :created_at) ON CONFLICT DO NOTHING`;

const SELECT_INSTALLATION = 'SELECT kind FROM installation WHERE id = 1';

/**
 * Settles the kind on first use, and holds to it afterwards.
 *
 * @param db a writer on access.db
 * @throws Refused `configuration` when the folder is of the other kind
 */
export function ensureInstallation(db: Database, kind: InstallationKind): void {
  const found = writing(db, () => {
    db.prepare(INSERT_INSTALLATION).run({ kind, created_at: now() });
    return installationKind(db);
  });
  if (found === kind) return;
  throw new Refused(
    'configuration',
    kind === 'appliance'
      ? `${db.name} was created by "wirewatch ${found}", whose keys are public. Name another folder with --data.`
      : `${db.name} belongs to ${found === 'appliance' ? 'an existing installation' : `"wirewatch ${found}"`}, which the ${kind} does not change. Name another folder with --data.`,
  );
}

/** The kind on record; null while nothing has settled it. */
export function installationKind(db: Database): InstallationKind | null {
  const row = db.prepare<[], { kind: InstallationKind }>(SELECT_INSTALLATION).get();
  return row === undefined ? null : row.kind;
}
